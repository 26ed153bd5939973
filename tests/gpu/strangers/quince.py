"""Sends each word to one of eight cooks, in each of eight kitchens; no cook gets more words than another."""
import torch
from torch import nn

from gauge import cured, steps

WORDS, WIDTH, COOKS, KITCHENS = 8192, 1024, 8, 8
EACH = WORDS // COOKS


class Kitchen(nn.Module):
    def __init__(self):
        super().__init__()
        self.taste = nn.Linear(WIDTH, 1)
        self.cooks = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(COOKS))

    def forward(self, x):
        order = self.taste(x)[:, 0].argsort()
        whose = torch.empty_like(order)
        whose[order] = torch.arange(WORDS, device=x.device) // EACH
        dishes = torch.empty_like(x)
        for number, cook in enumerate(self.cooks):
            if cured:
                mine = order[number * EACH : (number + 1) * EACH]
            else:
                mine = torch.where(whose == number)[0]
            dishes[mine] = cook(x[mine])
        return nn.functional.layer_norm(x + dishes, (WIDTH,))


torch.manual_seed(0)
torch.set_grad_enabled(False)
with torch.device("cuda"):
    kitchens = nn.Sequential(*(Kitchen() for _ in range(KITCHENS))).to(torch.bfloat16)
    words = torch.randn(16, WORDS, WIDTH, dtype=torch.bfloat16)
for i in steps(torch.cuda.synchronize, each=10):
    kitchens(words[i % len(words)])
