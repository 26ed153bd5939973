"""Trains a small network on random pieces of pictures that lie on the GPU."""
import torch
from torch import nn

import gauge

COUNT, SIDE, SIZE = 128, 128, 96


def at_once(pictures):
    n, grid = len(pictures), torch.arange(SIZE, device="cuda")
    rows = torch.randint(0, SIDE - SIZE + 1, (n, 1), device="cuda") + grid
    columns = torch.randint(0, SIDE - SIZE + 1, (n, 1), device="cuda") + grid
    columns = torch.where(torch.rand(n, 1, device="cuda") < 0.5, columns.flip(1), columns)
    which = torch.arange(n, device="cuda")[:, None, None]
    return pictures.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).float().div(255)


def pieces(pictures):
    tops = torch.randint(0, SIDE - SIZE + 1, (len(pictures),)).tolist()
    lefts = torch.randint(0, SIDE - SIZE + 1, (len(pictures),)).tolist()
    turned = (torch.rand(len(pictures)) < 0.5).tolist()
    out = []
    for picture, top, left, turn in zip(pictures, tops, lefts, turned):
        piece = picture[:, top : top + SIZE, left : left + SIZE].float().div(255)
        out.append(piece.flip(-1) if turn else piece)
    return torch.stack(out)


cut = at_once if gauge.cured else pieces
net = nn.Sequential(
    nn.Conv2d(3, 64, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100),
).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
album = torch.randint(0, 256, (4096, 3, SIDE, SIDE), dtype=torch.uint8, device="cuda")
names = torch.randint(0, 100, (4096,), device="cuda")

for i in gauge.steps(torch.cuda.synchronize, each=10):
    at = i * COUNT % len(album)
    loss = nn.functional.cross_entropy(net(cut(album[at : at + COUNT])), names[at : at + COUNT])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
