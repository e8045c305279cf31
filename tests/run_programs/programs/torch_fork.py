# cause: fork-after-init
"""A worker is forked after the GPU was used."""

import multiprocessing

import torch


def work(result):
    layer = torch.nn.Conv2d(3, 8, 3).cuda()
    result.put(layer(torch.randn(8, 3, 32, 32, device="cuda")).sum().item())


torch.randn(8, device="cuda").sum().item()
context = multiprocessing.get_context("fork")
queue = context.Queue()
worker = context.Process(target=work, args=(queue,))
worker.start()
worker.join()
raise SystemExit(worker.exitcode)
