"""Multiplies matrices with a kernel of Triton that works on large tiles."""
import torch
import triton
import triton.language as tl

from gauge import steps


@triton.jit
def tiles(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    at_a = a + rows[:, None] * K + inner[None, :]
    at_b = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += BK
        at_b += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


torch.manual_seed(0)
a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
c = torch.empty_like(a)
for _ in steps(torch.cuda.synchronize, each=50):
    tiles[(8192 // 128, 8192 // 128)](a, b, c, 8192, 8192, BM=128, BN=128, BK=64, num_warps=4, num_stages=4)
