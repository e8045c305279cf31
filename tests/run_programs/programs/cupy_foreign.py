# cause: -
"""A second context stays current under CuPy, which survives it: unified addresses, and it sets its own device."""

import cupy
import raw

a = cupy.arange(1000, dtype=cupy.float32)
print(float(a.sum()))
raw.make_context()
print(float((a * 2).sum()))
