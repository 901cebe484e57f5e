"""SQL text to predicates and workloads, read with sqlglot."""
