"""The verbs that users call, one file each.

`learn`, `score`, `apply`, `open` (table and read) and `route` (with attach and detach). The only package that joins
learners, Spark, SQL and tables.
"""
