"""Everything that needs Spark: sessions, storage, evaluation over rows, writing, and skipping files.

`judged` lists the settings, expressions and reader options of Spark that were reviewed. Imports core.
"""
