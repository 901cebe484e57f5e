"""Workloads: the queries on a table, and what learners and indexes need to know about them.

In: the predicates of a workload. Out: the queries of one table, the candidate cuts of a layout, and each query as
clauses over these cuts, which learners evaluate in bulk. Also the conditions that an index should note, and the shares
of a table that queries read. Imports `predicates` and `pruning`.
"""
