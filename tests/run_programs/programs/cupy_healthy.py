# cause: -
"""Sums and a kernel."""

import cupy

a = cupy.arange(1000, dtype=cupy.float32)
kernel = cupy.RawKernel('extern "C" __global__ void f(float *a) { a[threadIdx.x] += 1; }', "f")
kernel((1,), (100,), (a,))
print(float(a.sum()))
