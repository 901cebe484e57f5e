"""Growing a tree of the cuts that divide the rows best.

In: a `Problem`. Out: a tree, grown greedily (`greedy`; compiled loops in `kernels`). Imports `problem` and `cells`.
"""
