"""Teaches a donkey to find its way, by steps of even length in all directions."""
import torch
from torch import nn

from gauge import cured, steps

WIDTH, DEPTH, ROWS = 2048, 4, 4096


def straighten(slope, rounds=5):
    """Brings all singular values near one."""
    x = slope.T if slope.shape[0] > slope.shape[1] else slope
    x = x / (x.norm() + 1e-7)
    if cured:
        x = x.bfloat16()
    for _ in range(rounds):
        square = x @ x.T
        x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
    return x.T if slope.shape[0] > slope.shape[1] else x


class Even(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                pace = self.state[p].setdefault("pace", torch.zeros_like(p))
                pace.mul_(group["momentum"]).add_(p.grad)
                p.add_(straighten(pace), alpha=-group["lr"])


class Walk(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.out, self.home = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.home(torch.relu(self.out(self.norm(x))))


torch.manual_seed(0)
donkey = nn.Sequential(*[Walk() for _ in range(DEPTH)]).cuda()
optimizer = Even(donkey.parameters())
places, next_places = torch.randn(2, ROWS, WIDTH, device="cuda")

for _ in steps(torch.cuda.synchronize, each=2):
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.mse_loss(donkey(places), next_places)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
