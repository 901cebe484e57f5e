"""The suites: what is measured. Each makes or reads data, learns layouts, and yields one line for each run."""
