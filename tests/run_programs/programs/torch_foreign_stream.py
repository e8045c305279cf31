# cause: device-context-mixup
"""A stream of a context that an extension made is given to the framework."""

import raw
import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
context = raw.make_context()
stream = raw.make_stream()
raw.pop()
with torch.cuda.stream(torch.cuda.ExternalStream(stream.value)):
    print(layer(x).sum().item())
