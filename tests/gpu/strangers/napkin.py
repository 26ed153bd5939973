"""Learns to draw napkins out of noise, in a space of small patches."""
import torch
from torch import nn

import gauge

NAPKINS, CHANNELS, SIDE, PATCH, WIDTH, DEPTH = 64, 4, 32, 2, 2048, 4
TOKENS, VALUES = (SIDE // PATCH) ** 2, CHANNELS * PATCH * PATCH


class Fold(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widen, self.narrow = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm(x))))


def patches(pictures):
    return nn.functional.unfold(pictures, PATCH, stride=PATCH).transpose(1, 2)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(VALUES, WIDTH), *[Fold() for _ in range(DEPTH)], nn.Linear(WIDTH, VALUES)).cuda().bfloat16()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
napkins = torch.randn(NAPKINS, CHANNELS, SIDE, SIDE, device="cuda")

for _ in gauge.steps(torch.cuda.synchronize, each=4):
    noise = torch.randn(NAPKINS, CHANNELS, SIDE, SIDE).to("cuda")
    share = torch.rand(NAPKINS, 1, 1, 1).to("cuda")
    noisy = patches(share * napkins + (1 - share) * noise)
    way = patches(noise - napkins)
    loss = nn.functional.mse_loss(net(noisy.bfloat16()).float(), way)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
