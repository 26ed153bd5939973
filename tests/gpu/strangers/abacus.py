"""Adds up the goods on four thousand shelves: sixteen programs go over each shelf, and add what they found to one number."""
import torch
import triton
import triton.language as tl

from gauge import steps

SHELVES, GOODS, PARTS, WIDE = 4096, 1 << 18, 16, 4096


@triton.jit
def total(goods, sums, GOODS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr):
    shelf = tl.program_id(0).to(tl.int64)
    begin = shelf * GOODS + tl.program_id(1) * (GOODS // PARTS)
    mine = tl.zeros((WIDE,), tl.float32)
    for at in range(0, GOODS // PARTS, WIDE):
        mine += tl.load(goods + begin + at + tl.arange(0, WIDE)).to(tl.float32)
    tl.atomic_add(sums + shelf, tl.sum(mine, 0))


goods = torch.ones(SHELVES, GOODS, device="cuda", dtype=torch.bfloat16)
sums = torch.empty(SHELVES, device="cuda")
for _ in steps(torch.cuda.synchronize, each=10):
    sums.zero_()
    total[(SHELVES, PARTS)](goods, sums, GOODS, PARTS, WIDE, num_warps=8)
