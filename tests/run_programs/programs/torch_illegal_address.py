# cause: prior-cuda-fault
"""A custom kernel writes where nothing is; the next convolution reports it."""

import cupy
import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
torch.cuda.synchronize()
kernel = cupy.RawKernel('extern "C" __global__ void wild(unsigned long long p) { *(int *)p = 1; }', "wild")
kernel((1,), (1,), (cupy.uint64(0x123456789000),))
print(layer(x).sum().item())
