"""Shows guests to one of eight tables and back: rows are put in order, worked on table by table, and returned."""
import torch
import triton
import triton.language as tl

from gauge import steps


@triton.jit
def dispatch(guests, seated, order, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    tl.store(seated + row * WIDTH + at, tl.load(guests + tl.load(order + row) * WIDTH + at))


@triton.jit
def combine(seated, guests, order, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    tl.store(guests + tl.load(order + row) * WIDTH + at, tl.load(seated + row * WIDTH + at))


torch.manual_seed(0)
GUESTS, WIDTH = 65536, 2048
guests = torch.randn(GUESTS, WIDTH, device="cuda", dtype=torch.bfloat16)
seated = torch.empty_like(guests)
tables = torch.randn(8, WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) * 0.02
order = torch.randperm(GUESTS, device="cuda")


def dine():
    for _ in range(4):
        dispatch[(GUESTS,)](guests, seated, order, WIDTH=WIDTH)
        served = torch.tanh(torch.bmm(seated.view(8, -1, WIDTH), tables))
        combine[(GUESTS,)](served, guests, order, WIDTH=WIDTH)


for _ in steps(torch.cuda.synchronize, each=30):
    dine()
