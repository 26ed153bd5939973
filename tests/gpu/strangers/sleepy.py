"""Reads a value in each step, and sleeps for 20 ms in each fifth, as if it wrote to a log server.

truth
needs: torch
bound_by: host sync
steps: 1 0.2
must: host-bound no-cure sync-in-loop next-batch
may: tiny-copies
never: launch-bound pageable-copy alloc-in-loop no-overlap under-filled-gpu failed-calls
cured: sync-in-loop
cured_bound_by: compute host
cured_never: launch-bound pageable-copy alloc-in-loop
why: Five steps compute for some 20 ms, and then the GPU idles for 20. The cure reads nothing, so work is queued over the sleep.
"""
import time

import torch

from stamp import loop, modes

for cured in modes():
    torch.manual_seed(0)
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) * 0.01
    seen = 0.0

    def step():
        y = torch.relu(x @ w)
        y = torch.relu(y @ w)
        y = (y @ w).float().mean()
        return 0.0 if cured else y.item()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    for i in loop(300, torch.cuda.synchronize, by="mean" if cured else "median", warm=5):
        seen += step()
        if i % 5 == 4:
            time.sleep(0.02)
