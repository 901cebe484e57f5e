"""`hedgerow demo`: are queries faster on a table that Hedgerow wrote than on others' layouts of the same rows?

Takes a session, and how many rows to make, or a user's table and queries. Returns seconds and opened files of each kind
of query over each layout, and the picture of Hedgerow's table. May import `picture` and all below it.
"""
