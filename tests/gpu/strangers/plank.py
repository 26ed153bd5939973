"""Trains six wide layers in bfloat16 to tell what a plank bears."""
import torch
from torch import nn

import gauge

WIDTH, DEPTH, ROWS = 8192, 6, 8192
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.bfloat16)

    def forward(self, x):
        return x + torch.tanh(self.mix(x))


model = nn.Sequential(*[Layer() for _ in range(DEPTH)])
weights = list(model.parameters())
optimizer = torch.optim.AdamW(weights, lr=1e-5, fused=True)
x, y = (torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))

for _ in gauge.steps(torch.cuda.synchronize, each=4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 1.0, foreach=False)
    optimizer.step()
