"""Answers requests, sixteen rows each, with a deep network whose weights came in single precision."""
import torch
from torch import nn

from gauge import cured, steps

ROWS, WIDTH, DEPTH = 16, 4096, 6


class Fold(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
with torch.device("cuda"):
    model = nn.Sequential(*(Fold() for _ in range(DEPTH)))
    requests = torch.randn(32, ROWS, WIDTH)
if cured:
    model, requests = model.to(torch.bfloat16), requests.to(torch.bfloat16)


@torch.no_grad()
def serve(rows):
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not cured):
        return model(rows)


for i in steps(torch.cuda.synchronize, each=20):
    serve(requests[i % len(requests)])
