"""How does the command `hedgerow` read and print?

`app` holds what all commands share, `auto_command`, `log_commands` and others read the arguments and call the pipeline,
`output` prints the answer.
"""
