# cause: context-reset
"""Another thread releases the primary context more often than it retained it."""

import threading

import raw
import torch


def too_often():
    while not raw.cu.cuDevicePrimaryCtxRelease_v2(0):
        pass


x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
torch.cuda.synchronize()
thread = threading.Thread(target=too_often)
thread.start()
thread.join()
print(layer(x).sum().item())
