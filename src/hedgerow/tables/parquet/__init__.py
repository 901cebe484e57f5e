"""How is a managed Parquet table stored and changed?

`stored` reads its files, `write` changes them, `replicas` keeps full copies in other layouts, `verify` checks the
table, and `table` has the class that users hold.
"""
