"""Which blocks can a condition skip?

In: a predicate, and the statistics of blocks (`block_stats`). Out: for each block, whether the predicate can be TRUE,
FALSE or NULL there (`evaluator`). Rows in memory are blocks of one row (`row_batch`), so they need no other
evaluator. Imports `predicates`.
"""
