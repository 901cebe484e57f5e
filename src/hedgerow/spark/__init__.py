"""What only Spark can do: sessions, storage, evaluation over rows, writing, and skipping files.

`judged` lists what is known of the settings, expressions and reader options of Spark. Imports core.
"""
