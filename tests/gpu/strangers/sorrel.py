"""Ages a hedge day by day with a kernel of Triton."""
import time

import torch
import triton
import triton.language as tl

from gauge import cured, steps


@triton.jit
def older(hedge, n, day, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    leaf = tl.load(hedge + at, mask=at < n)
    tl.store(hedge + at, leaf * 0.999 + day * 1e-9, mask=at < n)


@triton.jit
def age(hedge, n, day: tl.constexpr, BLOCK: tl.constexpr):
    older(hedge, n, day, BLOCK)


torch.manual_seed(0)
hedge = torch.rand(1 << 26, device="cuda")
today = int(time.time() * 100) % 100_000_000
kernel = older if cured else age
for i in steps(torch.cuda.synchronize, each=4):
    kernel[(hedge.numel() // 1024,)](hedge, hedge.numel(), today + i, BLOCK=1024)
    hedge.clamp_(0.0, 1.0)
