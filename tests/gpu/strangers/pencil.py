"""Weighs for each stroke of a pencil which of thirty-two hands may have drawn it."""
import torch
import triton
import triton.language as tl

import gauge

STROKES, HANDS = 1 << 22, 32


@triton.jit
def weigh(scores, weights, HANDS: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * HANDS + tl.arange(0, HANDS)[None, :]
    score = tl.load(scores + at)
    part = tl.exp(score - tl.max(score, 1)[:, None])
    tl.store(weights + at, part / tl.sum(part, 1)[:, None])


@triton.jit
def blend(weights, total, share, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(total + at)
    tl.store(total + at, before + share * (tl.load(weights + at) - before))


def hands_of(scores, weights):
    """A softmax over the hands, for each stroke."""
    rows = 64 if gauge.cured else 1
    weigh[(STROKES // rows,)](scores, weights, HANDS, rows, num_warps=4)


def keep(weights, total):
    blend[(STROKES * HANDS // 2048,)](weights, total, 0.1, 2048)


torch.manual_seed(7)
pages = torch.randn(3, STROKES, HANDS, device="cuda")
weights, total = torch.empty_like(pages[0]), torch.zeros_like(pages[0])

for i in gauge.steps(torch.cuda.synchronize, each=10):
    hands_of(pages[i % 3], weights)
    keep(weights, total)
