"""Which block does a row go to?

A layout is data: a function from a row to a block, which can also be written as SQL and as JSON. There are trees,
curves, feature groups, a layout inside a layout, and trees with overlap. Imports `predicates`, `pruning` and `index`.
"""
