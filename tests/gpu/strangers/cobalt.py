"""Trains three wide layers in single precision."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
torch.set_float32_matmul_precision("high" if cured else "highest")
net = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(4096, 4096), nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True)
ore = torch.randn(4096, 4096, device="cuda")


def melt():
    loss = (net(ore) - ore).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=10):
    melt()
