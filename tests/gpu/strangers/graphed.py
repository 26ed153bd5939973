"""Runs a small network on batch after batch: kernel by kernel, or (cured) as one CUDA graph.

truth
needs: torch
bound_by: launch
steps: 1
must: launch-bound
may: under-filled-gpu memory-chain latency-bound
never: sync-in-loop host-bound pageable-copy alloc-in-loop no-overlap tiny-copies failed-calls no-cure
cured: launch-bound
cured_bound_by: compute
cured_never: launch-bound sync-in-loop host-bound pageable-copy alloc-in-loop no-overlap
why: 36 kernels of a few µs a step take longer to launch than to run; as a graph one launch does.
"""
import torch
from torch import nn

from stamp import loop, modes

for cured in modes():
    torch.manual_seed(0)
    parts = [part for _ in range(12) for part in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())]
    net = nn.Sequential(*parts).cuda().eval()
    batches = torch.rand(8, 64, 256, device="cuda")
    into = torch.empty(64, 256, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                net(into)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        if cured:
            with torch.cuda.graph(graph):
                net(into)
        torch.cuda.synchronize()
        for i in loop(3000, torch.cuda.synchronize, by="mean", warm=3):
            into.copy_(batches[i % 8])
            graph.replay() if cured else net(into)
