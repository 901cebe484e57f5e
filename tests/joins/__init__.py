"""Several tables that foreign keys join: a small world of them, and random queries over it."""
