"""Trains a chain of linear layers with layer-wise rates of one's own."""
import torch
from torch import nn

from gauge import cured, steps


class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            slopes = [p.grad for p in group["params"]]
            trust = shares(lengths(group["params"]), lengths(slopes))
            torch._foreach_mul_(slopes, trust)
            torch._foreach_add_(group["params"], slopes, alpha=-group["lr"])


def lengths(tensors):
    if cured:
        return torch._foreach_norm(tensors)
    return [t.norm().item() for t in tensors]


def shares(long, steep):
    if cured:
        return torch._foreach_div(long, torch._foreach_add(steep, 1e-3))
    return [a / (b + 1e-3) for a, b in zip(long, steep)]


torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(64)]).cuda()
optimizer = Lars(net.parameters(), lr=1e-4)
seeds = torch.randn(128, 256, device="cuda")


def sing():
    net(seeds).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in steps(torch.cuda.synchronize, each=10):
    sing()
