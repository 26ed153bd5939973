"""Adds up each column of a long table."""
import torch
import triton
import triton.language as tl

from gauge import cured, steps

ROWS, COLUMNS, WIDE, HIGH = 131072, 1024, 128, 32


@triton.jit
def tally(table, sums, each, COLUMNS: tl.constexpr, WIDE: tl.constexpr, HIGH: tl.constexpr):
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    begin = tl.program_id(1) * each
    total = tl.zeros((WIDE,), tl.float32)
    for row in range(begin, begin + each, HIGH):
        at = row + tl.arange(0, HIGH)
        total += tl.sum(tl.load(table + at[:, None] * COLUMNS + column[None, :]), 0)
    tl.atomic_add(sums + column, total)


torch.manual_seed(0)
table = torch.randn(ROWS, COLUMNS, device="cuda")
sums = torch.empty(COLUMNS, device="cuda")
parts = 128 if cured else 1
for _ in steps(torch.cuda.synchronize, each=20):
    sums.zero_()
    tally[(COLUMNS // WIDE, parts)](table, sums, ROWS // parts, COLUMNS, WIDE, HIGH, num_warps=8)
