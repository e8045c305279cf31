# cause: python-error
"""A wrong key, between two healthy steps."""

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(x).sum().item())
batch = {"image": x}
print(layer(batch["images"]).sum().item())
