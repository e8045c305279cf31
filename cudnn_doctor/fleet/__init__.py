"""Runs `check` once on every node over an engine that the cluster has already, one thin file an engine. Each says the
command that it runs and gives what came back as arrivals for the picture."""
