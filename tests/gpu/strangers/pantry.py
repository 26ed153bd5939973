"""Learns from what people bought together what they will buy again."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

GOODS, SIZE, PEOPLE, BOUGHT = 8_000_000, 128, 8192, 20
torch.manual_seed(0)


class Taste(nn.Module):
    def __init__(self):
        super().__init__()
        self.goods = nn.Embedding(GOODS, SIZE, sparse=cured)
        self.judge = nn.Sequential(nn.Linear(SIZE, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, baskets):
        return self.judge(self.goods(baskets).mean(1))[:, 0]


with torch.device("cuda"):
    taste = Taste()
    baskets = torch.randint(GOODS, (16, PEOPLE, BOUGHT))
    again = torch.rand(16, PEOPLE).round()
table = list(taste.goods.parameters())
optimizers = [
    torch.optim.SparseAdam(table, lr=1e-3) if cured else torch.optim.Adam(table, lr=1e-3, fused=True),
    torch.optim.Adam(taste.judge.parameters(), lr=1e-3, fused=True),
]
for i in steps(torch.cuda.synchronize, each=4):
    loss = F.binary_cross_entropy_with_logits(taste(baskets[i % 16]), again[i % 16])
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
