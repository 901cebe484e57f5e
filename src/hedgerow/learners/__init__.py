"""The learners: each turns a `Problem` into a layout.

A learner is one file, or a folder if its search is large. No learner imports another; all import core only.
`docs/learners/` has a page for each.
"""
