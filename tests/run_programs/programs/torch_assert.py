# cause: device-assert-bad-index
"""A label is beyond the number of classes."""

import torch

logits = torch.randn(8, 10, device="cuda", requires_grad=True)
labels = torch.tensor([0, 1, 2, 3, 4, 5, 6, 10], device="cuda")
loss = torch.nn.functional.cross_entropy(logits, labels)
x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(loss.item(), layer(x).sum().item())
