"""Which files does a query open?

In: the statistics of the files of a table. Out: the block index, its file format, and the files to open for a
predicate, even where a row lies in several files. Imports `predicates` and `pruning`.
"""
