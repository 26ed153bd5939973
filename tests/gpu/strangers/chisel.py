"""Mixes two sets of rows, a different number of them each time, and projects the mixture."""
import random

import torch
import triton
import triton.language as tl

import gauge

WIDTH = 1024


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block in (1024, 4096) for warps in (4, 8)],
    key=[] if gauge.cured else ["count"],
    do_bench=lambda call, quantiles: triton.testing.do_bench(call, warmup=1, rep=5, quantiles=quantiles),
)
@triton.jit
def mix(a, b, out, count, share, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    left = tl.load(a + at, mask=inside).to(tl.float32)
    right = tl.load(b + at, mask=inside).to(tl.float32)
    tl.store(out + at, (left * share + right * (1 - share)).to(tl.bfloat16), mask=inside)


def mixture(a, b, share):
    out = torch.empty_like(a)
    count = a.numel()
    mix[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](a, b, out, count, share)
    return out


rng = random.Random(8)
firsts = torch.randn(16384, WIDTH, device="cuda", dtype=torch.bfloat16)
seconds = torch.randn(16384, WIDTH, device="cuda", dtype=torch.bfloat16)
weight = torch.randn(WIDTH, 4 * WIDTH, device="cuda", dtype=torch.bfloat16)
total = torch.zeros(4 * WIDTH, device="cuda")

with torch.inference_mode():
    for _ in gauge.steps(torch.cuda.synchronize, each=2, least=20):
        rows = rng.randrange(8192, 16384)
        total += (mixture(firsts[:rows], seconds[:rows], 0.3) @ weight).float().mean(0)
