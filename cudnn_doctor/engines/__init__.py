"""Does every execution plan of cuDNN's engines honour the stream of the handle that it is executed with?

The parent side is `run` (children, restarts), `collect` and `verdicts` (what was seen of a plan); a child runs `body`
with `graphs`, `plans`, `memory`, `detectors` and `gpu`. What the whole means is in `rules.engines`.
"""
