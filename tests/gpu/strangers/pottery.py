"""Trains a long chain of linear layers."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(64)]).cuda()
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-5, momentum=0.9, centered=True, foreach=cured)
clay = torch.randn(64, 256, device="cuda")


def turn():
    loss = (net(clay) - clay).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=10):
    turn()
