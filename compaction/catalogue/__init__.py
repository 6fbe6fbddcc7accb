"""The library: which sessions exist, what is in them, and full text over them.

`discovery` finds the files, `scan` reads a slice of one, `store` writes it in one transaction, `indexer` drives both,
`sessions` and `search` ask. `database` opens SQLite in our own data folder or PostgreSQL by URL.
"""
