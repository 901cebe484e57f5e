"""How are the tables that `apply` writes stored, read and changed?

Such tables are called managed. A table is the files that its format lists, and parts, one for each write, that say what
these files cannot contain (`state`, `entry`, `part`). The two formats, `parquet` and `delta`, list files and commit;
every verb is written once (`managed`). `answers` tells Hedgerow's rule in Spark's optimizer which files a query opens.
`connect_pruning` prunes queries over Spark Connect, where that rule cannot be used. Imports core, spark and sql.
"""
