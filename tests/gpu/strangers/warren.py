"""Learns which rabbits of a warren belong to which burrow, from whom they meet and whom those meet."""
import random

import numpy
import torch
from torch import nn

import gauge

RABBITS, BATCH, NEAR, FAR, TRAITS, BURROWS = 100_000, 1024, 10, 5, 128, 47

rng = numpy.random.default_rng(0)
many = rng.integers(4, 21, RABBITS)
start = numpy.concatenate([[0], numpy.cumsum(many)])
ends = rng.integers(0, RABBITS, start[-1])
if gauge.cured:
    start, many, ends = (torch.from_numpy(part).cuda() for part in (start, many, ends))
else:
    meets = [part.tolist() for part in numpy.split(ends, start[1:-1])]


def draw(rabbits, count):
    """For each rabbit some of those that it meets."""
    met = []
    for rabbit in rabbits:
        met.append(random.choices(meets[rabbit], k=count))
    return met


def draw_together(rabbits, count):
    pick = torch.rand(len(rabbits), count, device="cuda") * many[rabbits, None]
    return ends[start[rabbits, None] + pick.long()]


def around():
    """A batch of rabbits, those that they meet, and those whom these meet."""
    if gauge.cured:
        own = torch.randint(RABBITS, (BATCH,), device="cuda")
        near = draw_together(own, NEAR)
        return own, near, draw_together(near.flatten(), FAR)
    own = random.sample(range(RABBITS), BATCH)
    near = draw(own, NEAR)
    far = draw([rabbit for row in near for rabbit in row], FAR)
    return tuple(torch.tensor(part).cuda() for part in (own, near, far))


class Kin(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first, self.second = nn.Linear(2 * TRAITS, width), nn.Linear(width + TRAITS, width)
        self.burrow = nn.Linear(width, BURROWS)

    def forward(self, own, near, far):
        met = traits[far].mean(1).view(-1, NEAR, TRAITS)
        near = torch.relu(self.first(torch.cat((traits[near], met), -1)))
        return self.burrow(torch.relu(self.second(torch.cat((traits[own], near.mean(1)), -1))))


traits = torch.randn(RABBITS, TRAITS, device="cuda")
burrows = torch.randint(BURROWS, (RABBITS,), device="cuda")
kin = Kin().cuda()
optimizer = torch.optim.Adam(kin.parameters(), lr=1e-3, fused=True)

for _ in gauge.steps(torch.cuda.synchronize, each=5):
    own, near, far = around()
    loss = nn.functional.cross_entropy(kin(own, near, far), burrows[own])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
