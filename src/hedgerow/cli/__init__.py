"""How does the command `hedgerow` read and print?

`app` holds what all commands share, `commands` and `log_commands` read the arguments and call the pipeline, `output`
prints the answer.
"""
