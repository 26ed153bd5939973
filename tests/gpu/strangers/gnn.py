"""Trains a graph network of torch_geometric on two million edges.

truth
needs: torch torch_geometric
bound_by: compute memory
steps: 1
must:
may: memory-chain latency-bound sync-in-loop:info tail-wave idle-tensor-cores
never: launch-bound host-bound pageable-copy alloc-in-loop no-overlap no-cure
why: Gathering and scattering 512 MB a layer takes the GPU several ms; the hidden waits (self loops are masked) cost little beside it.
"""
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from stamp import loop

torch.manual_seed(0)
edges = torch.randint(100_000, (2, 2_000_000), device="cuda")
x = torch.randn(100_000, 64, device="cuda")
labels = torch.randint(16, (100_000,), device="cuda")
first, second = GCNConv(64, 64).cuda(), GCNConv(64, 16).cuda()
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)


def step():
    optimizer.zero_grad(set_to_none=True)
    out = second(first(x, edges).relu(), edges)
    nn.functional.cross_entropy(out, labels).backward()
    optimizer.step()


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(200, torch.cuda.synchronize, by="mean", warm=3):
    step()
