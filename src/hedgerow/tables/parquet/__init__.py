"""A managed Parquet table.

`stored` reads what lies on disk, `write` changes it, `replicas` and `verify` do what their names say, and `table` is
the class that users hold.
"""
