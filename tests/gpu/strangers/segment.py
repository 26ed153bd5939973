"""Evaluates a segmentation network and takes the scores of every batch to the CPU.

truth
needs: torch
bound_by: copy sync
steps: 1
must: pageable-copy
may: sync-in-loop no-overlap copy-bound memory-chain low-bandwidth
never: launch-bound host-bound alloc-in-loop tiny-copies failed-calls no-cure
cured: pageable-copy
cured_bound_by: copy compute sync host
why: 88 MB of scores a batch go into fresh pageable memory; the network takes a few ms. The cure copies them into pinned memory.
"""
import torch
from torch import nn

from stamp import loop, modes

for cured in modes():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 21, 1)
    ).cuda().eval()
    images = torch.rand(16, 3, 256, 256, device="cuda")
    pinned = torch.empty(16, 21, 256, 256, pin_memory=True) if cured else None
    seen = 0

    @torch.no_grad()
    def step():
        scores = net(images)
        if not cured:
            return scores.cpu()
        pinned.copy_(scores, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return pinned

    for _ in range(3):
        step()
    for _ in loop(80, torch.cuda.synchronize, warm=3):
        seen += int(step()[0, :, 0, 0].argmax())
