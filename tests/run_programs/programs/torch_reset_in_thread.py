# cause: context-reset
"""Another thread resets the device between two steps."""

import threading

import raw
import torch


def janitor():
    raw.call("cuDevicePrimaryCtxReset_v2", 0)


x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
torch.cuda.synchronize()
thread = threading.Thread(target=janitor, name="janitor")
thread.start()
thread.join()
print(layer(x).sum().item())
