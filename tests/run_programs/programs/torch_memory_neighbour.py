# cause: vram-other-process
# alone
# neighbour
"""Small, but the card is full of somebody else's."""

import torch

kept = [torch.zeros(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(30)]
x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(x).sum().item())
