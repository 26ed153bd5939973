"""Builds a model on the CPU, moves it, prepares a vocabulary for a while, and then runs forty short passes.

truth
needs: torch
bound_by: compute host cold-start
steps: count
must:
may: no-cure memory-chain latency-bound tail-wave
never: pageable-copy sync-in-loop launch-bound alloc-in-loop no-overlap tiny-copies host-bound copy-bound
why: Weights are copied once and the CPU works before the first pass; the passes themselves are products of large matrices.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
parts = [part for _ in range(12) for part in (nn.Linear(4096, 4096), nn.GELU())]
net = nn.Sequential(*parts).bfloat16().cuda().eval()
words = {}
for n in range(3_000_000):
    words[str(n * 7919)] = n
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    for _ in loop(40, torch.cuda.synchronize, by="mean"):
        net(x)
