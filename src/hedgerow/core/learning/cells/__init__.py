"""Joining small cells into blocks of enough rows.

In: cells with their rows, and the clauses of the queries. Out: the block of each cell (`merge`; compiled loops in
`kernels`). Imports `workload` and `pruning`.
"""
