"""Trains a dozen layers."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(not cured)
net = nn.Sequential(*[part for _ in range(12) for part in (nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.GELU())]).cuda().bfloat16()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
tin = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16)


def pour():
    loss = (net(tin) - tin).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=10):
    pour()
