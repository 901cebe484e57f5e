"""Qd-tree, grown greedily: Yang et al., SIGMOD 2020, sections 4 and 6.2.

In: a `Problem`. Out: a tree of cuts; with `overlap`, small leaves are copied. Open `qdtree` first; `overlap` chooses
the copies. The greedy search is in `core/learning/trees`, because Pando shares its loops. MTO is this learner on rows
with columns of joined tables.
"""
