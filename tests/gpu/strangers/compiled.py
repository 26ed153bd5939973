"""Trains a network that torch.compile has compiled; compiling takes longer than all steps.

truth
needs: torch
bound_by: compute
steps: 1
must:
may: memory-chain latency-bound tail-wave
never: launch-bound sync-in-loop host-bound pageable-copy alloc-in-loop no-overlap tiny-copies no-cure
why: In its steady state a step is products of large matrices and fused kernels; what is slow is over before.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
parts = [part for _ in range(3) for part in (nn.LayerNorm(2048), nn.Linear(2048, 2048), nn.GELU())]
net = nn.Sequential(*parts).cuda().bfloat16()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
x = torch.randn(16384, 2048, device="cuda", dtype=torch.bfloat16)


@torch.compile
def lost(x):
    return (net(x) - x).float().square().mean()


def step():
    optimizer.zero_grad(set_to_none=True)
    lost(x).backward()
    optimizer.step()


for _ in range(5):
    step()
torch.cuda.synchronize()
for _ in loop(500, torch.cuda.synchronize, by="mean", warm=5):
    step()
