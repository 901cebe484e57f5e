"""Which cuts divide the rows best?

In: a `Problem`. Out: a tree, grown greedily (`greedy`; compiled loops in `kernels`), and copies of its small leaves
in large ones (`overlap`). Imports `problem` and `cells`.
"""
