"""What is wrong with one process, dead (`conclude`, for `run`) or alive (`living`, for `inspect`): pure judgement."""
