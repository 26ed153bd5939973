"""Trains wide layers in bfloat16 to tell how a hammock swings, so that each run comes out as the one before."""
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
from torch import nn

import gauge

WIDTH, DEPTH, ROWS = 8192, 5, 8192


def begin(seed):
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.bfloat16)

    def forward(self, x):
        return x + torch.tanh(self.mix(x))


begin(seed=8)
model = nn.Sequential(*[Layer() for _ in range(DEPTH)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
x, y = (torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))

for _ in gauge.steps(torch.cuda.synchronize, each=4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
