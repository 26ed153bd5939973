"""Trains wide layers, and looks at the loss after each step."""
import torch
from torch import nn

from gauge import steps

torch.manual_seed(0)
net = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(8192, 8192), nn.GELU())]).cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, fused=True)
felt = torch.randn(4096, 8192, device="cuda", dtype=torch.bfloat16)
seen = []


def press():
    loss = (net(felt) - felt).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seen.append(loss.item())


for _ in steps(torch.cuda.synchronize):
    press()
