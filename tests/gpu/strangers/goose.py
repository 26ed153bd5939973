"""Learns from the flights of geese where they will go in winter."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import gauge

GEESE, HOURS, FLOCK, WIDTH, DEPTH = 20_000, 64, 128, 3072, 4


class Flights(Dataset):
    def __init__(self):
        self.ways = torch.randn(GEESE, HOURS, 16)
        self.winters = torch.randint(40, (GEESE,))

    def __len__(self):
        return GEESE

    def __getitem__(self, i):
        return self.ways[i], self.winters[i]


class Wing(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def endless(loader):
    while True:
        yield from loader


torch.manual_seed(0)
batches = endless(DataLoader(Flights(), batch_size=FLOCK, shuffle=True, drop_last=True))
net = nn.Sequential(nn.Linear(16, WIDTH), *[Wing() for _ in range(DEPTH)], nn.Linear(WIDTH, 40)).cuda().bfloat16()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)

for _ in gauge.steps(torch.cuda.synchronize, each=4):
    ways, winters = next(batches)
    guesses = net(ways.cuda().bfloat16()).float().mean(1)
    loss = nn.functional.cross_entropy(guesses, winters.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
