# cause: mps-client-fault
# mps
"""Healthy itself; another client of the MPS server faults."""

import time

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print("ready", flush=True)
for _ in range(300):
    layer(x).sum().item()
    time.sleep(0.05)
