"""What does a condition mean?

SQL conditions become small frozen trees (`nodes`) with one canonical text each (`sql_text`). They are bound to the
types of a table (`binding`), brought to one form (`normal_form`), compared (`implication`), and evaluated row by row
(`row_truth`). Of core, this package imports `errors` only.
"""
