"""Learns how a street wears, and stops when it learns no more."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import steps

STONES, WIDTH, DEPTH = 16384, 8192, 4
torch.manual_seed(0)
with torch.device("cuda"):
    wear = nn.Sequential(*(part for _ in range(DEPTH) for part in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()))).bfloat16()
    stones, worn = torch.randn(2, 4, STONES, WIDTH, dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(wear.parameters(), lr=1e-5, fused=True)
best, since = float("inf"), 0
for i in steps(torch.cuda.synchronize, each=2):
    loss = F.mse_loss(wear(stones[i % 4]), worn[i % 4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    now = loss.item()
    best, since = (now, 0) if now < best else (best, since + 1)
    if since > 100_000:
        break
