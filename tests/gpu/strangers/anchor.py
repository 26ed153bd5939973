"""Teaches a wide network to give back what it was given, and prints nothing but keeps each loss."""
import torch
from torch import nn

from gauge import steps

WIDTH, DEPTH, ROWS = 8192, 6, 8192
torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(DEPTH))).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
rows = torch.randn(8, ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
losses = []
for i in steps(torch.cuda.synchronize):
    some = rows[i % len(rows)]
    loss = (model(some) - some).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
