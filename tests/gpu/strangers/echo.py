"""Trains a network and follows its weights with three moving averages."""
import torch
from torch import nn

import gauge

torch.set_float32_matmul_precision("high")


class Rung(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.mix(self.norm(x)))


def follow(shadow, weights, decay):
    for kept, weight in zip(shadow, weights):
        kept.mul_(decay).add_(weight, alpha=1 - decay)


def follow_all(shadow, weights, decay):
    torch._foreach_mul_(shadow, decay)
    torch._foreach_add_(shadow, weights, alpha=1 - decay)


model = nn.Sequential(nn.Linear(64, 384), *[Rung(384) for _ in range(48)], nn.Linear(384, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
weights = [weight.detach() for weight in model.parameters()]
shadows = {decay: [weight.clone() for weight in weights] for decay in (0.99, 0.999, 0.9999)}
update = follow_all if gauge.cured else follow
x, y = torch.randn(512, 64, device="cuda"), torch.randn(512, 8, device="cuda")

for _ in gauge.steps(torch.cuda.synchronize, each=10):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for decay, shadow in shadows.items():
            update(shadow, weights, decay)
