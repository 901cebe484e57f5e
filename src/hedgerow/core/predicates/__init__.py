"""SQL conditions as trees: the data types, their meaning, and how they are bound, normalised and compared.

A condition is a small frozen tree (`nodes`) with one canonical text (`sql_text`). `binding` gives it the types of a
table, `normal_form` brings equal conditions to one form, `implication` compares two, and `row_truth` evaluates one on
a row. Inside core, this package imports only `errors`.
"""
