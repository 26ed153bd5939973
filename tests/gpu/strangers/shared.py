"""Multiplies matrices on a GPU that another process, not of this program, computes on all the while.

truth
needs: torch
beside: beside.py
bound_by: compute unknown
steps: count
must: machine
may: latency-bound tail-wave memory-chain
never: launch-bound host-bound sync-in-loop pageable-copy alloc-in-loop no-overlap tiny-copies
why: The other process is in no record of this one; NVML lists it. What it takes looks like longer kernels, or like idle time.
"""
import torch

from stamp import loop

torch.manual_seed(0)
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
w = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 0.01


def step():
    y = x
    for _ in range(6):
        y = torch.relu(y @ w)
    torch.nn.functional.layer_norm(y, (4096,))


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(800, torch.cuda.synchronize, by="mean", warm=3):
    step()
