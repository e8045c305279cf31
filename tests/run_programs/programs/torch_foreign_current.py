# cause: -
"""An extension leaves its own context current, as pycuda.autoinit does; PyTorch 2.11 makes its own current again."""

import raw
import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
torch.cuda.synchronize()
raw.make_context()
print(layer(x).sum().item())
