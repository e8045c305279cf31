# cause: context-reset
"""Memory is to be freed by a reset of the device; a new stream comes after it."""

import raw
import torch


def free_memory():
    raw.call("cuDevicePrimaryCtxReset_v2", 0)


x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
free_memory()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    print(layer(x).sum().item())
