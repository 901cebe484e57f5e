"""How is a managed Delta table indexed and changed?

`table` has the class that users hold, `segments` stores the index of each write, `segment_list` the list of them,
`rewrite` changes the table, and `snapshot_files` describes the files of one version.
"""
