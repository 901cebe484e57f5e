"""How are the tables that `apply` writes stored, read and changed?

Such tables are called managed. A table consists of the files that its format lists, and of parts: each write makes one
part, with an index of values that its files cannot contain (`state`, `entry`, `part`). The two formats, `parquet` and
`delta`, list files and commit; all verbs are the same for both (`managed`). `answers` gives Hedgerow's rule in Spark's
optimizer the files that a query opens. `connect_pruning` skips files over Spark Connect, where that rule cannot run.
Imports core, spark and sql.
"""
