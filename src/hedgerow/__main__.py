"""`python -m hedgerow` is the command `hedgerow`."""

from hedgerow.cli.commands import main

if __name__ == "__main__":
    main()
