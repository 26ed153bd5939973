"""Learns to tell carpets by their knots on top of a body that knows them already, and keeps a slow average of the weights for use."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn

from gauge import cured, steps

WIDTH, DEPTH, ROWS, KINDS, DECAY = 512, 40, 1024, 30, 0.999


class Knot(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm(x))))


def slow_copy(net):
    if cured:
        return AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
    return AveragedModel(net, avg_fn=get_ema_avg_fn(DECAY))


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
body = nn.Sequential(*[Knot() for _ in range(DEPTH)]).requires_grad_(False)
head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, KINDS))
net = nn.Sequential(body, head).cuda()
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-4, fused=True)
average = slow_copy(net)
carpets = torch.randn(ROWS, WIDTH, device="cuda")
kinds = torch.randint(KINDS, (ROWS,), device="cuda")


def learn():
    loss = nn.functional.cross_entropy(net(carpets), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(net)


for _ in steps(torch.cuda.synchronize, each=5):
    learn()
