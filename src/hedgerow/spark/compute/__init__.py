"""What do the rows say?

In: a DataFrame. Out: a sample, the block of each row, the outcomes of conditions, statistics of files, and a
checksum. Imports `start` and `storage`.
"""
