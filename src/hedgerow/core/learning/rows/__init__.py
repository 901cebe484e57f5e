"""Which rows have the same features?

In: a `Problem`. Out: groups of rows by the features of the workload, as in bottom-up partitioning: `features` chooses
the features, `clustering` merges and orders the vectors of rows, `groups` makes blocks. Imports `problem` and
`cells`.
"""
