"""Which functions do users call?

One file each: `learn`, `score`, `apply`, `open` (table and read) and `route` (with attach and detach). This is the only
package that joins learners, Spark, SQL and tables.
"""
