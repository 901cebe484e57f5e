"""How are the tables that `apply` writes stored, read and changed?

Managed tables exist in two formats that meet one protocol (`base`). `session_pruning` answers the optimizer rule,
`connect_pruning` serves Spark Connect. Imports core, spark and sql.
"""
