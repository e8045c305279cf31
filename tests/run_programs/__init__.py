"""Small programs with one hidden cause each; `python -m tests.run_programs` runs them under `run` on a machine with a
GPU.

A comment at the top of each in programs/ says the cause that must be named ("-": none), and how it is run.
tests/recordings/run holds what was seen of them on an H200, redacted; tests/postmortem/test_recordings.py judges that
without a GPU.
"""
