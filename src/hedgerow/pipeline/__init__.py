"""How does a user learn, write, read and watch a table?

One file each: `learn`, `score`, `apply` (and `learn_tables`, `score_tables`, `apply_tables`), `open` (table and read)
and `route` (with attach and detach). This package joins learners, Spark, SQL and tables; `pilot` and `picture` build on
it.
"""
