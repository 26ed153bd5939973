"""The backward pass of a wide bias: columns of a tall gradient are summed by a kernel of Triton."""
import torch
import triton
import triton.language as tl

from gauge import cured, steps

ROWS, COLUMNS, WIDE, TALL = 131072, 1024, 128, 32


@triton.jit
def column_sums(grad, sums, rows_each, COLUMNS: tl.constexpr, WIDE: tl.constexpr, TALL: tl.constexpr):
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    first = tl.program_id(1) * rows_each
    total = tl.zeros((TALL, WIDE), tl.float32)
    for row in range(0, rows_each, TALL):
        at = (first + row + tl.arange(0, TALL))[:, None] * COLUMNS + column[None, :]
        total += tl.load(grad + at)
    tl.store(sums + tl.program_id(1) * COLUMNS + column, tl.sum(total, 0))


torch.manual_seed(0)
grad = torch.randn(ROWS, COLUMNS, device="cuda")
bias = torch.zeros(COLUMNS, device="cuda")
parts = 128 if cured else 1
sums = torch.empty(parts, COLUMNS, device="cuda")


def bias_step():
    grid = (COLUMNS // WIDE, parts)
    column_sums[grid](grad, sums, ROWS // parts, COLUMNS=COLUMNS, WIDE=WIDE, TALL=TALL, num_warps=4)
    bias.add_(sums.sum(0), alpha=-1e-4)


for _ in steps(torch.cuda.synchronize, each=20):
    bias_step()
