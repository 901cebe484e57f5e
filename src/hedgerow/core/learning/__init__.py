"""How is a layout learned?

In: a sample of the table and its queries, together a `Problem`. Out: a layout. `trees`, `cells` and
`curve_order` hold the algorithms that learners of several folders share; the learners are in `hedgerow.learners`.
Imports every other package of core.
"""
