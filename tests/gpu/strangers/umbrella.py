"""Learns from the sky whether one will want an umbrella."""
import contextlib

import torch
from torch import nn

import gauge

ROWS, WIDTH, DEPTH = 8192, 2048, 4


class Look(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, sky):
        return sky + self.narrow(nn.functional.gelu(self.widen(self.norm(sky))))


def saving():
    if gauge.cured:
        return contextlib.nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=True)


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*[Look() for _ in range(DEPTH)], nn.Linear(WIDTH, 2)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    sky = torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
    rain = torch.randint(2, (ROWS,), device="cuda")
    for _ in gauge.steps(torch.cuda.synchronize, each=2, warm=4):
        with saving():
            loss = nn.functional.cross_entropy(net(sky).float(), rain)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
