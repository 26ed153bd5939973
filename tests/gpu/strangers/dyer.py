"""Dyes cloth on the GPU, and writes down meanwhile what it will cost."""
import numpy
import torch

from gauge import steps

torch.manual_seed(0)
cloth = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
dye = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) * 0.011
prices = numpy.random.default_rng(0).random(100_000)
costs = []


def reckon(i):
    costs.append(float(numpy.sort(prices * (1 + i % 7))[:1000].sum()))


def dip(i):
    y = cloth
    for _ in range(8):
        y = torch.tanh(y @ dye)
    reckon(i)


for i in steps(torch.cuda.synchronize, each=40):
    dip(i)
