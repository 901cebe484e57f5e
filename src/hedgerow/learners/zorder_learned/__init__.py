"""A Z-order whose bit pattern is searched for.

`search` is the learner; `scan_cost` estimates what the queries would scan of a sample in some order.
"""
