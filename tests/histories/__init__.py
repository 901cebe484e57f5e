"""Random histories of tables: what happens to them between queries, and whether the queries still answer the truth."""
