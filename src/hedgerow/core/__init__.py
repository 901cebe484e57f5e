"""The reasoning, without any engine: predicates, what blocks cannot contain, layouts, and how to learn them.

Nothing here reads a file or starts Spark. It needs numpy, numba, pyarrow and the standard library only.
"""
