"""Learns to say each spot of a picture by one of a thousand colours."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

SPOTS, FACTS, SIZE, COLOURS, WIDTH = 32768, 256, 64, 1024, 512
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Nearest(torch.autograd.Function):
    """The nearest colour of each spot; its slope goes on to the spot as if nothing had been chosen."""

    @staticmethod
    def forward(ctx, spots, colours):
        if cured:
            far = colours.square().sum(-1) - 2 * (spots @ colours.T)
        else:
            far = (spots[:, None] - colours[None]).square().sum(-1)
        which = far.argmin(-1)
        ctx.mark_non_differentiable(which)
        return colours[which], which

    @staticmethod
    def backward(ctx, slope, _):
        return slope, None


with torch.device("cuda"):
    squeeze = nn.Sequential(nn.Linear(FACTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, SIZE))
    spread = nn.Sequential(nn.Linear(SIZE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, FACTS))
    colours = nn.Parameter(torch.randn(COLOURS, SIZE))
    pictures = torch.randn(16, SPOTS, FACTS)
optimizer = torch.optim.AdamW([*squeeze.parameters(), *spread.parameters(), colours], lr=1e-4, fused=True)
for i in steps(torch.cuda.synchronize, each=5):
    picture = pictures[i % 16]
    spots = squeeze(picture)
    chosen, which = Nearest.apply(spots, colours)
    loss = F.mse_loss(spread(chosen), picture) + F.mse_loss(spots, chosen.detach()) + F.mse_loss(F.embedding(which, colours), spots.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
