# cause: host-out-of-memory
# cgroup: 3G
"""It reads the whole data set into main memory."""

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(x).sum().item(), flush=True)
kept = []
while True:
    kept.append(b"x" * (64 << 20))
