"""Pando: Sudhir et al., VLDB 2023.

In: a `Problem`. Out: a tree whose leaves are joined into blocks. Open `pando` first; `forest` grows several trees at
once, with compiled loops in `kernels`.
"""
