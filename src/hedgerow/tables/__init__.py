"""How are the tables that `apply` writes stored, read and changed?

Such tables are called managed. There are two formats, `parquet` and `delta`, and both meet one protocol (`base`).
`session_pruning` tells Hedgerow's rule in Spark's optimizer which files a query has to open. `connect_pruning` prunes
queries over Spark Connect, where that rule cannot be used. Imports core, spark and sql.
"""
