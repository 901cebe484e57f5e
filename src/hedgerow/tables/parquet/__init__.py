"""How are the files of a managed Parquet table listed, written and copied?

`folder` is the table as its format sees it. `write` makes a new one, `target` checks what it may replace, and
`exchange` replaces it. `append` adds rows, `replicas` keeps full copies in other layouts. Imports what both formats
share.
"""
