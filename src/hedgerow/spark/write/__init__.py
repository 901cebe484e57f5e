"""How do rows become files?

In: a DataFrame and a layout. Out: one file a block (`blocks`), the copies of a layout with overlap (`copies`), or
blocks inside partitions (`partition_files`). Imports `compute` and below.
"""
