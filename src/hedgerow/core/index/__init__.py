"""Decide which files a query opens.

In: the statistics of the files of a table. Out: the block index, its file format, and the files to open for a
predicate, also for tables that store some rows in several files. Imports `predicates` and `pruning`.
"""
