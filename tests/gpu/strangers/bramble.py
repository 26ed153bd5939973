"""Keeps the mean and the spread of a thousand channels of a recording."""
import torch
import triton
import triton.language as tl

from gauge import cured, steps

ROWS, CHANNELS, SPAN = 262144, 1024, 4096
TALL, WIDE = (32, 64) if cured else (2048, 1)
torch.manual_seed(0)


@triton.jit
def fold(x, sums, squares, channels, SPAN: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr):
    channel = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    first = tl.program_id(1) * SPAN
    total = tl.zeros((TALL, WIDE), tl.float32)
    square = tl.zeros((TALL, WIDE), tl.float32)
    for row in range(0, SPAN, TALL):
        at = first + row + tl.arange(0, TALL)
        value = tl.load(x + at[:, None] * channels + channel[None, :])
        total += value
        square += value * value
    out = tl.program_id(1) * channels + channel
    tl.store(sums + out, tl.sum(total, 0))
    tl.store(squares + out, tl.sum(square, 0))


with torch.device("cuda"):
    parts = [torch.randn(ROWS, CHANNELS) for _ in range(4)]
    sums, squares = torch.empty(ROWS // SPAN, CHANNELS), torch.empty(ROWS // SPAN, CHANNELS)
    mean, spread = torch.zeros(CHANNELS), torch.ones(CHANNELS)
for i in steps(torch.cuda.synchronize, each=16):
    fold[(CHANNELS // WIDE, ROWS // SPAN)](parts[i % 4], sums, squares, CHANNELS, SPAN, TALL, WIDE)
    now = sums.sum(0) / ROWS
    mean.lerp_(now, 0.01)
    spread.lerp_(squares.sum(0) / ROWS - now * now, 0.01)
