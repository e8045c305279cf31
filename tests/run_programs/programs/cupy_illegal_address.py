# cause: prior-cuda-fault
"""A kernel without a bounds check."""

import cupy

a = cupy.zeros(16, dtype=cupy.float32)
kernel = cupy.RawKernel('extern "C" __global__ void f(float *a, long long n) { a[n * 1000000000LL] = 1; }', "f")
kernel((1,), (1,), (a, cupy.int64(4000)))
print(float(a.sum()))
