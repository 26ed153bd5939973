"""Classifies camera pictures that the CPU converts and resizes, one by one.

truth
needs: torch
bound_by: host
steps: 1
must: host-bound no-cure next-batch
may: pageable-copy no-cpu
never: launch-bound sync-in-loop:warning alloc-in-loop tiny-copies no-overlap failed-calls
why: Sixteen pictures take the CPU tens of ms; the network takes the GPU a few.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
part = lambda a, b: (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU())
net = nn.Sequential(*part(3, 64), *part(64, 128), *part(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)).cuda().eval()
pictures = torch.randint(256, (16, 3, 720, 1280), dtype=torch.uint8)
found = []


@torch.no_grad()
def step():
    small = []
    for picture in pictures:
        whole = picture.float().div_(255).unsqueeze(0)
        small.append(nn.functional.interpolate(whole, (224, 224), mode="bilinear", antialias=True))
    found[:] = net(torch.cat(small).cuda()).argmax(1).tolist()


for _ in range(2):
    step()
for _ in loop(40, torch.cuda.synchronize, warm=2):
    step()
