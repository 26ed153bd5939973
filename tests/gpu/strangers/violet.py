"""Waters a bed of flowers row by row with a kernel of Triton; at noon the bed is made longer."""
import torch
import triton
import triton.language as tl

from gauge import cured, steps


@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (256, 512, 1024, 2048) for w in (2, 4, 8)], key=["n"])
@triton.jit
def water(bed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wet = tl.load(bed + at, mask=at < n)
    tl.store(bed + at, wet * 0.99 + 0.01, mask=at < n)


bed = torch.zeros(1 << 28, device="cuda")
grid = lambda meta: (triton.cdiv(bed.numel(), meta["BLOCK"]),)
for i in steps(torch.cuda.synchronize, each=4, least=1600):
    n = bed.numel() if cured or i < 400 else bed.numel() - 1024
    for _ in range(4):
        water[grid](bed, n)
