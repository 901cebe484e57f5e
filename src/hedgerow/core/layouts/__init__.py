"""Layouts: functions from a row to a block, stored as data.

A layout can be written as SQL and as JSON. The kinds are trees, curves, feature groups, and trees with overlap. Imports
`predicates`, `pruning` and `index`.
"""
