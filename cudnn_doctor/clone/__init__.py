"""A throw-away copy of a Python environment: made by links, changed, run in, compared, removed. The original is read
only."""
