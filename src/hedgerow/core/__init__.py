"""The reasoning: predicates, statistics, layouts. Only numpy, pyarrow and the standard library live here."""
