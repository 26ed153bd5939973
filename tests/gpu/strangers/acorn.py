"""Glazes a plate with two hundred colours, one coat after another."""
import torch

from gauge import cured, steps

torch.manual_seed(0)
colours = torch.rand(200, 3).tolist()
plate = torch.zeros(160, 160, 3, device="cuda")


def glaze():
    for colour in torch.tensor(colours, device="cuda") if cured else colours:
        coat = colour if cured else torch.tensor(colour, device="cuda")
        plate.mul_(0.95).add_(coat, alpha=0.05)


for _ in steps(torch.cuda.synchronize, each=5):
    glaze()
