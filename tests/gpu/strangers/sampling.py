"""Samples tokens one after another; each token decides which expert runs next, so it has to be read.

truth
needs: torch
bound_by: launch sync
steps: none
must: launch-bound sync-in-loop
may: tiny-copies under-filled-gpu no-cure memory-chain latency-bound
never: sync-in-loop:warning pageable-copy host-bound alloc-in-loop no-overlap failed-calls
why: What is launched next follows from the value that was read: the wait cannot go, only fewer or faster launches help.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
experts = [nn.Sequential(*[p for _ in range(4 + 2 * k) for p in (nn.Linear(512, 512), nn.SiLU())]).cuda() for k in range(4)]
embed = nn.Embedding(1024, 512).cuda()
head = nn.Linear(512, 1024).cuda()
told = [1]


@torch.no_grad()
def step():
    last = told[-1]
    x = embed(torch.full((1,), last, device="cuda"))
    x = x + experts[last % 4](x)
    token = torch.multinomial((head(x) / 0.8).softmax(-1), 1).item()
    if token % 97 == 0:
        told.clear()
    told.append(token)


for _ in range(20):
    step()
for _ in loop(5000, torch.cuda.synchronize, warm=20):
    step()
