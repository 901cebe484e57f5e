"""How does a query skip files?

`attach` installs the rule of the jar in a session. The rule sends requests (`wire`) to `tables.answers`, which answers
with the files to open. `rule` reads from the JVM what only Spark knows, `query_notes` what queries have read. Imports
`start` and `storage`.
"""
