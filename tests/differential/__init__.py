"""The differential machine: random tables, settings and queries, asked with pruning and without."""
