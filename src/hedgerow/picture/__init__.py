"""How are a table and its queries drawn as a page?

In: a managed table, its queries, and the autopilot's decisions. Out: a page of HTML. `show` gathers the facts; `facts`,
`charts` and `page` make the page of plain values.
"""
