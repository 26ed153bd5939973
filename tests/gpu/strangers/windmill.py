"""Foretells the wind with a compiled network, and counts in ordinary Python what was asked of it."""
import torch
from torch import nn

from gauge import steps

ROWS, WIDTH, DEPTH = 16384, 8192, 3
torch.manual_seed(0)
asked = []


@torch.compiler.disable
def note(x):
    if len(asked) < 1000:
        asked.append(x.shape[0])


with torch.device("cuda"):
    into = nn.Sequential(*(part for _ in range(DEPTH) for part in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()))).bfloat16()
    out = nn.Sequential(*(part for _ in range(DEPTH) for part in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()))).bfloat16()
    winds = list(torch.randn(4, ROWS, WIDTH, dtype=torch.bfloat16))


@torch.compile
def foretell(x):
    x = into(x)
    note(x)
    return out(x)


with torch.no_grad():
    for i in steps(torch.cuda.synchronize, each=4):
        foretell(winds[i % 4])
