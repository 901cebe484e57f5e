"""How does a query skip files?

`Pruning.java` is a rule of the query optimizer; `rule` compiles it, `attach` installs it in a session. The rule sends
conditions as JSON to `tables.answers`, which answers with the files to open. Imports `start`.
"""
