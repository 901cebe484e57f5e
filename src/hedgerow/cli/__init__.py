"""How does the command `hedgerow` read and print?

`commands` reads the arguments and calls the pipeline, `output` prints the answer.
"""
