# cause: context-reset
"""numba's cuda.close() in a clean-up between two steps."""

import torch
from numba import cuda

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
cuda.to_device([1.0, 2.0])
cuda.close()
print(layer(x).sum().item())
