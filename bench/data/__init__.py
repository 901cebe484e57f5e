"""The tables and the query texts of the suites, generated once and cached."""
