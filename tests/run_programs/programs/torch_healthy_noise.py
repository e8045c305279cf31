# cause: -
"""A caught out-of-memory error and a retry with less, as frameworks do."""

import torch

try:
    torch.zeros(1 << 40, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    x = torch.zeros(1 << 20, device="cuda")
layer = torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(torch.randn(8, 3, 32, 32, device="cuda")).sum().item(), x.sum().item())
