# cause: stalled
# before: timeout 25
# options: --stall 5
"""Two threads wait for each other's lock."""

import threading

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(x).sum().item(), flush=True)
first = threading.Lock()
first.acquire()


def wait_for_ever():
    first.acquire()


wait_for_ever()
