"""Keeps all seeds of the year in main memory, and sorts a handful of them at a time."""
import torch

from gauge import cured, steps

torch.manual_seed(0)
ROWS = 8192
handfuls = 4 if cured else 96
seeds = torch.empty(handfuls, ROWS, 4096, dtype=torch.bfloat16, pin_memory=True)
sieve = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 0.015
for handful in seeds[:4]:
    handful[:512].normal_()


def sort(i):
    some = seeds[i % 4, :512].to("cuda", non_blocking=True)
    some = some.repeat(16, 1)
    for _ in range(12):
        some = torch.tanh(some @ sieve)


for i in steps(torch.cuda.synchronize, each=20):
    sort(i)
