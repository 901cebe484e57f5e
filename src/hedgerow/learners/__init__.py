"""The learners: each turns a `Problem` into a layout.

Each paper has a folder with everything that only its learners need; its `__init__` names the file to open first. No
folder imports another, and all import core only. `docs/learners/` has a page for each learner.
"""
