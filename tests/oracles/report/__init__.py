"""A second, independently written derivation of what the reports say, compared with the project's own.

Rows are plain dicts with the columns of docs/rows.md. Everything is a loop over them and a textbook formula: slow, and
short enough to be checked by eye. The code of `finskillbench.analysis` and `finskillbench.reports` was not read for it.
"""
