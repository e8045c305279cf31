# cause: -
"""Twenty steps of training."""

import torch

layer = torch.nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
for _ in range(20):
    loss = layer(torch.randn(8, 3, 32, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
