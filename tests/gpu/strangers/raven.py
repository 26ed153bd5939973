"""Finds how much each of twenty thousand ravens is heeded, in four flocks, from how often one follows another."""
import torch

import gauge

RAVENS, FLOCKS = 20480, 4
torch.manual_seed(0)
follows = [torch.rand(RAVENS, RAVENS, device="cuda") for _ in range(FLOCKS)]
for flock in follows:
    flock /= flock.sum(0)
heed = [torch.full((RAVENS,), 1 / RAVENS, device="cuda") for _ in range(FLOCKS)]

for _ in gauge.steps(torch.cuda.synchronize, each=10):
    for k in range(FLOCKS):
        new = torch.mv(follows[k], heed[k])
        heed[k] = new / torch.linalg.vector_norm(new, 1)
