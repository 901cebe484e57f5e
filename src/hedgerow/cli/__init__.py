"""The command `hedgerow`.

`commands` reads the arguments and calls the pipeline, `output` prints the answer.
"""
