"""Which curve orders the rows?

In: a `Problem`. Out: the columns of a curve, the bits of each column, and where blocks end (`order`; compiled loops
in `kernels`). Imports `problem`.
"""
