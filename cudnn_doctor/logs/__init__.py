"""Reading texts: a log is a machine seen through a keyhole. Says what is there, never what it means."""
