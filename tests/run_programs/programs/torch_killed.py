# cause: killed-from-outside
"""Somebody sends SIGKILL."""

import os
import signal
import subprocess

import torch

x, layer = torch.randn(8, 3, 32, 32, device="cuda"), torch.nn.Conv2d(3, 8, 3).cuda()
print(layer(x).sum().item(), flush=True)
subprocess.run(["sh", "-c", f"kill -{int(signal.SIGKILL)} {os.getpid()}"], check=False)
