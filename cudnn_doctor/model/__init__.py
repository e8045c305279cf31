"""The types that travel between the parts, and pure values: nothing here reads the machine."""
