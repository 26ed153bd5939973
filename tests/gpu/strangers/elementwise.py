"""Writes an activation out as a row of elementwise operations on 256 MB each.

truth
needs: torch
bound_by: compute memory
steps: 1
must: memory-chain
may: latency-bound
never: sync-in-loop pageable-copy host-bound launch-bound no-overlap alloc-in-loop tiny-copies under-filled-gpu no-cure tail-wave
why: Ten kernels in a row read and write the same memory; fused they would do so once.
"""
import torch

from stamp import loop

x = torch.rand(1 << 26, device="cuda")


def step():
    inner = x * x
    inner = inner * x
    inner = inner * 0.044715
    inner = inner + x
    inner = inner * 0.79788456
    inner = torch.tanh(inner)
    inner = inner + 1.0
    inner = inner * x
    inner = inner * 0.5
    return torch.sigmoid(inner)


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(900, torch.cuda.synchronize, by="mean", warm=3):
    step()
