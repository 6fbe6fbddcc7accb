"""`make bench`: what things cost, against a baseline measured in the same run, since absolute times differ by machine.

Each file `bench_*.py` here has a function `run(table: Table) -> None`; adding a file adds it to the run.
"""
