"""Learns which flowers grow together: a wide table of kinds, and a tower of layers above it."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
KINDS, BATCH = 1_000_000, 8192
ground = "cuda" if cured else "cpu"
table = nn.EmbeddingBag(KINDS, 128, mode="mean", sparse=True).to(ground)
tower = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
roots = torch.optim.SparseAdam(list(table.parameters()), lr=1e-3)
stems = torch.optim.AdamW(tower.parameters(), lr=1e-3, fused=True)
bags = torch.randint(KINDS, (8, BATCH, 16)).to(ground)


def grow(i):
    flowers = table(bags[i % 8]).cuda()
    loss = tower(flowers).square().mean()
    loss.backward()
    stems.step()
    roots.step()
    stems.zero_grad()
    roots.zero_grad()


for i in steps(torch.cuda.synchronize, each=2, warm=3):
    grow(i)
