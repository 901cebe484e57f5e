"""SQL text to the conditions of each table.

In: SQL text. Out: predicates and a `Workload`, for learning only. At query time Spark reads its own SQL, so a
misreading here can make a layout worse, but never lose a row. Imports core.
"""
