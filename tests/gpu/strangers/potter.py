"""Trains a deep and narrow network, one call of whose optimizer does for all tensors."""
import torch
from torch import nn

from gauge import steps

torch.manual_seed(0)
net = nn.Sequential(*[part for _ in range(80) for part in (nn.Linear(128, 128), nn.LayerNorm(128), nn.SiLU())]).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
clay = torch.randn(64, 128, device="cuda")


def turn():
    (net(clay) - clay).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=20):
    turn()
