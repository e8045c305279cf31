"""A process seen from outside: the wrapper of `run`, and what the kernel and NVML tell of a live process.

Says what is, never what it means. What stands in the way of the start of a program (streams, relay, echo, wrapper)
loads nothing but the standard library's small modules: `run -- /bin/true` must stay quick.
"""
