"""What leaves this machine without names, addresses and secrets."""
