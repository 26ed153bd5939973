"""Invents names for boats, sixteen at a time."""
import numpy as np
import torch
from torch import nn

from gauge import cured, steps

PIECES, BOATS, WIDTH, DEPTH, SHARE = 32000, 16, 2048, 3, 0.9
torch.manual_seed(0)
rng = np.random.default_rng(0)


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(PIECES, WIDTH)
        self.cells = nn.ModuleList(nn.GRUCell(WIDTH, WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, PIECES)

    def forward(self, piece, states):
        x, after = self.embed(piece), []
        for cell, state in zip(self.cells, states):
            after.append(cell(x, state))
            x = x + after[-1]
        return self.head(x), after


def draw(scores):
    """A piece of each boat's likeliest ones, that together make up SHARE."""
    chances = torch.softmax(scores.float(), -1)
    if cured:
        sorted_chances, order = chances.sort(-1, descending=True)
        sorted_chances[sorted_chances.cumsum(-1) - sorted_chances > SHARE] = 0
        won = (sorted_chances / torch.empty_like(sorted_chances).exponential_()).argmax(-1, keepdim=True)
        return order.gather(-1, won)[:, 0]
    chosen = []
    for row in chances.cpu().numpy().astype(np.float64):
        order = np.argsort(-row)
        kept = order[: np.searchsorted(np.cumsum(row[order]), SHARE) + 1]
        chosen.append(rng.choice(kept, p=row[kept] / row[kept].sum()))
    return torch.tensor(chosen, device="cuda")


with torch.device("cuda"):
    writer = Writer().bfloat16()
    states = [torch.zeros(BOATS, WIDTH, dtype=torch.bfloat16) for _ in range(DEPTH)]
    piece = torch.randint(PIECES, (BOATS,))
with torch.inference_mode():
    for i in steps(torch.cuda.synchronize, each=4):
        scores, states = writer(piece, states)
        piece = draw(scores)
