"""What does a table look like, and what do queries read of it?

In: a managed table, its queries, and the autopilot's decisions. Out: a page of HTML. `show` gathers the facts; `facts`,
`charts` and `page` make the page of plain values.
"""
