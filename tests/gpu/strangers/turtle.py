"""Trains a network that tells from its tracks in the sand where a turtle goes."""
import os

import gauge

os.environ["CUDA_LAUNCH_BLOCKING"] = "0" if gauge.cured else "1"

import torch
from torch import nn

WIDTH, DEPTH, ROWS = 1024, 20, 4096
torch.manual_seed(0)


class Track(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.turn, self.go = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + self.go(nn.functional.gelu(self.turn(self.norm(x))))


model = nn.Sequential(*[Track() for _ in range(DEPTH)], nn.Linear(WIDTH, 8)).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
tracks = torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
ways = torch.randint(8, (ROWS,), device="cuda")

for _ in gauge.steps(torch.cuda.synchronize, each=5):
    loss = nn.functional.cross_entropy(model(tracks).float(), ways)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
