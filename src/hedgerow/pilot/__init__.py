"""When is a table rewritten, and which of its files?

In: a table, and the log of its queries. Out: a decision, carried out and noted beside the table. `autopilot` is the
file to open first; it looks (`look`), decides (`search`) and rewrites with `pipeline`. `settings`, `decision`,
`history`, `backoff`, `choose`, `cost`, `recency`, `forecast`, `monthly`, `budget` and `follow` reason without Spark.
"""
