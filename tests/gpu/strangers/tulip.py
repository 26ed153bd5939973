"""Walks through a chain of products, each into a place that was made before."""
import torch

from gauge import steps

SIDE, LONG = 8192, 16
torch.manual_seed(0)
links = torch.randn(4, SIDE, SIDE, device="cuda", dtype=torch.bfloat16) / SIDE**0.5
ends = [torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
for _ in steps(torch.cuda.synchronize, each=4):
    for k in range(LONG):
        torch.mm(links[k % len(links)], ends[k % 2], out=ends[(k + 1) % 2])
    torch.cuda.empty_cache()
