"""Trains with the optimizer on the CPU: gradients come down, new weights go up.

truth
needs: torch
bound_by: host copy
steps: 1 4
must: host-bound pageable-copy no-cure next-batch
may: no-overlap no-cpu
never: launch-bound sync-in-loop tiny-copies alloc-in-loop under-filled-gpu failed-calls
why: AdamW over 17 million weights takes the CPU tens of ms, and 67 MB go each way in pageable memory; the GPU computes for a few ms.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(4)]).cuda()
mine = [p.detach().cpu().clone().requires_grad_() for p in net.parameters()]
optimizer = torch.optim.AdamW(mine, lr=1e-4)
x = torch.randn(2048, 2048, device="cuda")


def step():
    net.zero_grad(set_to_none=True)
    net(x).square().mean().backward()
    for there, here in zip(net.parameters(), mine):
        here.grad = there.grad.cpu()
    optimizer.step()
    with torch.no_grad():
        for there, here in zip(net.parameters(), mine):
            there.copy_(here)


for _ in range(2):
    step()
for _ in loop(40, torch.cuda.synchronize, warm=2):
    step()
