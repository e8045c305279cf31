# cause: vram-exhausted
# alone
"""It keeps every batch."""

import torch

kept = []
while True:
    kept.append(torch.zeros(4 << 30, dtype=torch.uint8, device="cuda"))
