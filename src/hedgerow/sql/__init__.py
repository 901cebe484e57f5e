"""Which conditions of a SQL query apply to which table?

In: SQL text. Out: predicates and a `Workload`, for learning only: at query time Spark reads its own SQL, so a
misreading here can make a layout worse but never lose a row. Imports core.
"""
