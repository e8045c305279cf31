"""The compatibility matrix: rows, what fits with what, questions and their answers."""
