"""Mending a session: ways to mend by finding, a draft that is judged again until it is stable, the plan to write."""
