# cause: killed-by-scheduler
# before: timeout 20
"""It would go on for ever."""

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
while True:
    layer(x).sum().item()
