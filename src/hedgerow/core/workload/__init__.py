"""What do the queries ask for?

In: the predicates of a workload. Out: the queries of one table, the cuts that a layout may use, and each query as
clauses over these cuts, which learners evaluate in bulk; the conditions that an index should note, and the shares of a
table that queries read. Imports `predicates` and `pruning`.
"""
