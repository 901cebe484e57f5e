"""Which block does a row go to?

A layout is a function from a row to a block, stored as data: it can be written as SQL and as JSON. The kinds are trees,
curves, feature groups, a layout inside a layout, and trees with overlap. Imports `predicates`, `pruning` and `index`.
"""
