"""Decide which blocks a condition can skip.

In: a predicate, and the statistics of blocks (`block_stats`). Out: for each block, whether the predicate can be TRUE,
FALSE or NULL on its rows (`evaluator`). Rows in memory are treated as blocks of one row (`row_batch`) and use the same
evaluator. Imports `predicates`.
"""
