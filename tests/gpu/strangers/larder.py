"""Learns what a flat will cost from sixty-four numbers about it."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from gauge import cured, steps

FLATS, FACTS, TOGETHER, WIDTH = 1_000_000, 64, 8192, 1024
torch.manual_seed(0)


class Flats(Dataset):
    def __init__(self):
        self.facts, self.prices = torch.randn(FLATS, FACTS), torch.rand(FLATS)

    def __len__(self):
        return FLATS

    def __getitem__(self, which):
        return self.facts[which], self.prices[which]


flats = Flats()
if cured:
    loader = DataLoader(flats, batch_size=None, sampler=BatchSampler(RandomSampler(flats), TOGETHER, drop_last=True))
else:
    loader = DataLoader(flats, batch_size=TOGETHER, shuffle=True, drop_last=True)


def forever():
    while True:
        yield from loader


with torch.device("cuda"):
    guess = nn.Sequential(nn.Linear(FACTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
optimizer = torch.optim.AdamW(guess.parameters(), lr=1e-3, fused=True)
for i, (facts, price) in zip(steps(torch.cuda.synchronize, each=2), forever()):
    facts, price = facts.cuda(), price.cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.mse_loss(guess(facts)[:, 0].float(), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
