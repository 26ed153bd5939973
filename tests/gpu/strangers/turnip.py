"""Trains a mixer of small linear layers with Lion, written down as in the paper."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                if p not in self.state:
                    self.state[p]["mean"] = torch.zeros_like(p)
            move = self.move_all if cured else self.move_each
            move(params, group["lr"], *group["betas"], group["decay"])

    def move_each(self, params, lr, beta1, beta2, decay):
        for p in params:
            mean = self.state[p]["mean"]
            p.mul_(1 - lr * decay)
            p.add_(mean.lerp(p.grad, 1 - beta1).sign_(), alpha=-lr)
            mean.lerp_(p.grad, 1 - beta2)

    def move_all(self, params, lr, beta1, beta2, decay):
        means, grads = [self.state[p]["mean"] for p in params], [p.grad for p in params]
        torch._foreach_mul_(params, 1 - lr * decay)
        updates = torch._foreach_lerp(means, grads, 1 - beta1)
        torch._foreach_sign_(updates)
        torch._foreach_add_(params, updates, alpha=-lr)
        torch._foreach_lerp_(means, grads, 1 - beta2)


class Block(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.left(h) * self.right(h)


model = nn.Sequential(*[Block() for _ in range(40)], nn.Linear(320, 10)).cuda()
optimizer = Lion(model.parameters())
inputs = torch.randn(512, 320, device="cuda")
labels = torch.randint(10, (512,), device="cuda")


def train_step():
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


for _ in steps(torch.cuda.synchronize, each=10):
    train_step()
