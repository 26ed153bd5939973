"""Computes the recall of ten classes of each batch, and reads each as a number of Python's.

truth
needs: torch
bound_by: launch sync
steps: 1 10
must: launch-bound sync-in-loop tiny-copies
may: memory-chain under-filled-gpu
never: pageable-copy host-bound alloc-in-loop no-overlap failed-calls no-cure
cured: sync-in-loop tiny-copies
cured_bound_by: launch
cured_never: tiny-copies pageable-copy host-bound
why: Kernels take 2 µs and a launch takes more; ten .item() a step wait between them. The cure reads ten values at once.
"""
import torch

from stamp import loop, modes

for cured in modes():
    torch.manual_seed(0)
    scores = torch.randn(8, 10, 4096, device="cuda")
    labels = torch.randint(10, (8, 4096), device="cuda")
    best = 0.0

    def step(i):
        predicted, truth = scores[i % 8].argmax(0), labels[i % 8]
        recalls = []
        for c in range(10):
            of_class = truth == c
            recall = ((predicted == c) & of_class).sum() / of_class.sum()
            recalls.append(recall if cured else recall.item())
        return sum(torch.stack(recalls).tolist() if cured else recalls)

    for i in range(20):
        step(i)
    for i in loop(1200, torch.cuda.synchronize, warm=20):
        best = max(best, step(i))
