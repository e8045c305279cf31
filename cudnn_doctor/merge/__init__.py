"""Reports of many nodes in, one picture out. Pure but for `reading`: no clock, no process, no network."""
