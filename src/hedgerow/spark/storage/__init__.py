"""How are rows and files stored and listed?

In: a path, a table name or a DataFrame. Out: folders on any file system (`folder`), Parquet footers (`footers`), the
log of a Delta table (`delta_log`), and the table as a source of rows (`source`). Imports `start`.
"""
