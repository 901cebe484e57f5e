"""When is a table rewritten, and which of its files?

In: a table, and the log of its queries. Out: a decision, carried out and noted beside the table. `run` is the file to
open first. `settings`, `decision`, `history`, `backoff`, `choose`, `cost` and `recency` reason without Spark; `search`
learns layouts with `pipeline`, and `run` rewrites with it.
"""
