"""States made on live handles: one file a state, with its metadata, its expectations and its body."""
