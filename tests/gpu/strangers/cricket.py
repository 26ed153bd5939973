"""Learns the pull of the tide from forty-eight gauges."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

HOURS, WIDTH, DEPTH = 4096, 512, 48
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widen, self.narrow = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.widen(self.norm(x))))


with torch.device("cuda"):
    tide = nn.Sequential(*(Layer() for _ in range(DEPTH))).bfloat16()
    gauges, pull = torch.randn(2, 8, HOURS, WIDTH).bfloat16()
optimizer = torch.optim.AdamW(tide.parameters(), lr=1e-4, fused=True)
history = []


def note(model):
    """Keeps how long each gradient is, for the plot."""
    if cured:
        history.append(torch.stack(torch._foreach_norm([p.grad for p in model.parameters()])))
    else:
        history.append({name: p.grad.norm().item() for name, p in model.named_parameters()})


for i in steps(torch.cuda.synchronize, each=4):
    loss = F.mse_loss(tide(gauges[i % 8]), pull[i % 8])
    optimizer.zero_grad()
    loss.backward()
    note(tide)
    optimizer.step()
