"""Sums columns with a Triton kernel of sixteen programs, each of which goes through all rows.

truth
needs: torch triton
bound_by: compute
steps: 1
must: under-filled-gpu
may: latency-bound memory-chain
never: sync-in-loop pageable-copy host-bound launch-bound no-overlap alloc-in-loop tiny-copies tail-wave no-cure failed-calls
why: Sixteen blocks run on sixteen of 132 SMs for milliseconds, one kernel at a time.
"""
import torch
import triton
import triton.language as tl

from stamp import loop


@triton.jit
def column_sums(x, out, rows, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total += tl.load(x + row * columns + at)
    tl.store(out + at, total)


x = torch.rand(4096, 2048, device="cuda")
out = torch.empty(2048, device="cuda")


def step():
    column_sums[(16,)](x, out, 4096, 2048, BLOCK=128)
    out.div_(4096.0)
    out.clamp_(0.0, 1.0)


for _ in range(3):
    step()
torch.cuda.synchronize()
for _ in loop(1000, torch.cuda.synchronize, by="mean", warm=3):
    step()
