"""How is a managed Parquet table stored and changed?

`manifest` is what a table stores about its state, `stored` reads its files, `write` changes them, `target` says what a
table may replace and `exchange` replaces it, `replicas` keeps full copies in other layouts, `verify` checks the table,
and `table` has the class that users hold.
"""
