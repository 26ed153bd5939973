"""Learns to take noise away from small pictures; the weights are averaged over three spans of time."""
import copy

import torch
from torch import nn

from gauge import cured, steps

BATCH, WIDTH, DEPTH, SPANS = 256, 256, 40, (0.99, 0.999, 0.9999)


class Cup(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.gain = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x + self.gain * self.down(nn.functional.silu(self.up(self.norm(x))))


torch.manual_seed(0)
model = nn.Sequential(*(Cup() for _ in range(DEPTH))).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
averages = [copy.deepcopy(model).requires_grad_(False) for _ in SPANS]
pictures = torch.randn(64, BATCH, WIDTH, device="cuda")
weights = list(model.parameters())
held = [list(average.parameters()) for average in averages]


@torch.no_grad()
def average():
    for span, kept in zip(SPANS, held):
        if cured:
            torch._foreach_lerp_(kept, weights, 1 - span)
            continue
        for old, new in zip(kept, weights):
            old.mul_(span).add_(new, alpha=1 - span)


for i in steps(torch.cuda.synchronize, each=10):
    clean = pictures[i % len(pictures)]
    noise = torch.randn_like(clean)
    loss = nn.functional.mse_loss(model(clean + noise), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average()
