"""`reproduce`: makes every known way to a stream error on live handles and says which ones happen on this box."""
