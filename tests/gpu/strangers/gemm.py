"""Multiplies large matrices, layer by layer, and waits for nothing.

truth
needs: torch
bound_by: compute
steps: 1
must:
may: tail-wave latency-bound
never: sync-in-loop pageable-copy host-bound launch-bound no-overlap alloc-in-loop tiny-copies under-filled-gpu memory-chain idle-tensor-cores no-cure
why: Products of 8192 columns in bfloat16 keep the tensor cores busy; nothing is left to cure.
"""
import torch

from stamp import loop

torch.manual_seed(0)
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
up = torch.randn(8192, 16384, device="cuda", dtype=torch.bfloat16) * 0.01
down = torch.randn(16384, 8192, device="cuda", dtype=torch.bfloat16) * 0.01


def step():
    hidden = torch.relu(x @ up)
    torch.nn.functional.layer_norm(hidden @ down, (8192,))


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(300, torch.cuda.synchronize, by="mean", warm=3):
    step()
