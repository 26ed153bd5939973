"""Trains two wide layers on arrays of single precision."""
import torch
from torch import nn

from gauge import steps

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
net = nn.Sequential(nn.Linear(8192, 8192), nn.GELU(), nn.Linear(8192, 8192)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, fused=True)
vat = torch.randn(8192, 8192, device="cuda")


def dip():
    (net(vat) - vat).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=8):
    dip()
