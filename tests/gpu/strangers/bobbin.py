"""Compares each thread of two cloths with each thread of the other, by a kernel of its own."""
import torch
import triton
import triton.language as tl

import gauge

THREADS, LENGTH = 4096, 4096


@triton.jit
def compare(left, right, out, count, length, EXACT: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr):
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    columns = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    along = tl.arange(0, DEEP)
    left += rows[:, None] * length + along[None, :]
    right += columns[None, :] * length + along[:, None]
    alike = tl.zeros((TALL, WIDE), tl.float32)
    for k in range(0, length, DEEP):
        alike = tl.dot(tl.load(left + k), tl.load(right + k), alike, input_precision=EXACT)
    tl.store(out + rows[:, None] * count + columns[None, :], alike)


def compared(left, right):
    out = torch.empty(THREADS, THREADS, device="cuda")
    grid = (THREADS // 64, THREADS // 64)
    compare[grid](left, right, out, THREADS, LENGTH, EXACT="tf32" if gauge.cured else "ieee", TALL=64, WIDE=64, DEEP=32, num_warps=4, num_stages=3)
    return out


torch.manual_seed(0)
cloths = [torch.randn(THREADS, LENGTH, device="cuda") for _ in range(3)]

for i in gauge.steps(torch.cuda.synchronize, each=4):
    alike = compared(cloths[i % 3], cloths[(i + 1) % 3])
    best = alike.max(1).values
