"""How does Spark summarise rows?

In: a DataFrame. Out: a sample, the block of each row, the outcomes of conditions, statistics of files, and a
checksum. Imports `start` and `storage`.
"""
