"""Trains a convolution network with cudnn.benchmark: the first step tries what is fastest.

truth
needs: torch
bound_by: compute
steps: 1
must:
may: memory-chain latency-bound tail-wave idle-tensor-cores
never: sync-in-loop alloc-in-loop launch-bound host-bound pageable-copy no-overlap tiny-copies failed-calls no-cure
why: Trials wait and allocate, but once; the steps behind them keep the GPU busy.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
part = lambda a, b, size: (nn.Conv2d(a, b, size, padding=size // 2), nn.BatchNorm2d(b), nn.ReLU())
net = nn.Sequential(
    *part(3, 64, 7), *part(64, 96, 3), *part(96, 128, 5), *part(128, 160, 3), *part(160, 192, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 100)
).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
images = torch.rand(64, 3, 64, 64, device="cuda")
labels = torch.randint(100, (64,), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(250, torch.cuda.synchronize, by="mean", warm=3):
    step()
