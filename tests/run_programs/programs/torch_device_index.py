# cause: environment-restriction
"""A device that is not there."""

import torch

layer = torch.nn.Conv2d(3, 8, 3).to("cuda:7")
print(layer(torch.randn(8, 3, 32, 32, device="cuda:7")).sum().item())
