"""Asks a net many times with other gaps in it how sure it is of the price of a house."""
import random

import torch
import triton
import triton.language as tl
from torch import nn

from gauge import cured, steps

HOUSES, WIDTH, KEEP = 16384, 4096, 0.9
torch.manual_seed(0)


@triton.jit
def gaps(x, y, seed, keep, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at).to(tl.float32)
    value = tl.where(tl.rand(seed, at) < keep, tl.maximum(value, 0.0) / keep, 0.0)
    tl.store(y + at, value.to(tl.bfloat16))


@triton.jit
def thin(x, y, seed: tl.constexpr, keep, BLOCK: tl.constexpr):
    gaps(x, y, seed, keep, BLOCK)


@triton.jit(do_not_specialize=["seed"])
def thin_any(x, y, seed, keep, BLOCK: tl.constexpr):
    gaps(x, y, seed, keep, BLOCK)


def torn(x, seed):
    y = torch.empty_like(x)
    (thin_any if cured else thin)[(x.numel() // 1024,)](x, y, seed, KEEP, 1024)
    return y


with torch.device("cuda"):
    into, across, out = (nn.Linear(a, b).bfloat16() for a, b in ((256, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)))
    houses = torch.randn(HOUSES, 256).bfloat16()
    mean, square = torch.zeros(HOUSES, 1), torch.zeros(HOUSES, 1)
with torch.inference_mode():
    for i in steps(torch.cuda.synchronize, each=2):
        seed = random.getrandbits(31)
        price = out(torn(across(torn(into(houses), seed)), seed)).float()
        mean.lerp_(price, 0.02)
        square.lerp_(price * price, 0.02)
