"""How are the files of a managed Delta table listed, rewritten and put back?

`files` is the table as its format sees it; `rewrite` has all that commits. Imports what both formats share.
"""
