"""A managed Delta table.

`table` is the class that users hold, `segments` stores what is known of the files, `rewrite` changes the table, and
`snapshot_files` describes the files of one version.
"""
