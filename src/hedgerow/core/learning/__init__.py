"""Learning a layout, as far as several learners share it; the learners are in `hedgerow.learners`.

In: a sample of the table and its queries, together a `Problem`. Out: a layout. `trees`, `cells` and `curve_order` hold
the shared algorithms. Imports every other package of core.
"""
