"""SQL conditions as trees: data types, meaning, binding, normal form and comparison.

A condition is a small frozen tree (`nodes`) with one canonical text (`sql_text`). `binding` gives it the types of a
table, `normal_form` brings equal conditions to one form, `implication` compares two, and `row_truth` evaluates one on
a row. Inside core, this package imports only `errors`.
"""
