# cause: stream-or-handle-destroyed
"""The stream is destroyed by its owner while the framework still uses it."""

import raw
import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
layer(x)
stream = raw.make_stream()
outer = torch.cuda.ExternalStream(stream.value)
with torch.cuda.stream(outer):
    layer(x)
torch.cuda.synchronize()
raw.call("cuStreamDestroy_v2", stream)
with torch.cuda.stream(outer):
    print(layer(x).sum().item())
