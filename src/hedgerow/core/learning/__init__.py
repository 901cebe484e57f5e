"""How is a layout learned?

In: a sample of the table and its queries, together a `Problem`. Out: a layout. `trees`, `curves`, `rows` and `cells`
hold the algorithms that learners share; the learners are in `hedgerow.learners`. Imports every other package of core.
"""
