"""Everything that needs a Spark session; the rest of the package runs without one."""
