"""Answers with a network that was fitted to its owner: each layer has a small correction beside its weights."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

WIDTH, RANK, DEPTH, ROWS, SHARE = 8192, 16, 16, 32, 2.0
torch.manual_seed(0)
torch.set_grad_enabled(False)


class Fitted(nn.Module):
    def __init__(self):
        super().__init__()
        self.cloth = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH**0.5)
        self.left, self.right = nn.Parameter(torch.randn(WIDTH, RANK) * 0.01), nn.Parameter(torch.randn(RANK, WIDTH) * 0.01)
        self.sewn = False

    def sew(self):
        self.cloth += SHARE * (self.left @ self.right)
        self.sewn = True

    def forward(self, x):
        weight = self.cloth if self.sewn else self.cloth + SHARE * (self.left @ self.right)
        return x + torch.relu(F.linear(F.layer_norm(x, (WIDTH,)), weight))


with torch.device("cuda"):
    suit = nn.Sequential(*(Fitted().bfloat16() for _ in range(DEPTH)))
    asked = torch.randn(16, ROWS, WIDTH, dtype=torch.bfloat16)
if cured:
    for layer in suit:
        layer.sew()
for i in steps(torch.cuda.synchronize, each=10):
    suit(asked[i % 16])
