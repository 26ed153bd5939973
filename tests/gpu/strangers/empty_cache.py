"""Gives PyTorch's cached memory back after every step, "so that it does not run out".

truth
needs: torch
bound_by: host sync
steps: 1
must: alloc-in-loop
may: sync-in-loop tiny-copies memory-chain launch-bound
never: pageable-copy host-bound no-overlap failed-calls
cured: alloc-in-loop
cured_bound_by: compute launch memory sync
cured_never: alloc-in-loop pageable-copy host-bound
why: Sixteen blocks of 64 MB are allocated and freed with the driver in each step; kernels on them take far less.
"""
import torch

from stamp import loop, modes

for cured in modes():
    x = torch.rand(1 << 24, device="cuda")

    def step():
        scaled = [x * k for k in range(16)]
        loss = sum(part.mean() for part in scaled).item()
        del scaled
        if not cured:
            torch.cuda.empty_cache()
        return loss

    for _ in range(3):
        step()
    for _ in loop(1200 if cured else 150, torch.cuda.synchronize, warm=3):
        step()
