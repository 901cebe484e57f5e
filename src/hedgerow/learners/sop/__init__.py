"""Skipping-oriented partitioning (SOP): Sun et al., 2014; with a Z-order, chapter 4 of the thesis of 2019.

In: a `Problem`. Out: groups of rows by the conditions that they meet (`bottom_up`), or a Z-order with such groups as
one more dimension (`sop_zorder`). Open `bottom_up` first: `features` chooses the conditions,
`clustering` joins groups. `correlation` finds redundant features.
"""
