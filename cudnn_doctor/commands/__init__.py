"""The commands: each file parses, calls, prints and exits. Nothing below imports this."""
