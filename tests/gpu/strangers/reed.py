"""Bends a field of reeds in the wind, and keeps a book of each gust."""
import math

import cupy

from gauge import cured, steps

cupy.random.seed(0)
wind = (cupy.random.standard_normal((4096, 4096), dtype=cupy.float32) * 0.015).astype(cupy.float16)
reeds = cupy.random.standard_normal((8192, 4096), dtype=cupy.float32).astype(cupy.float16)
stream = cupy.cuda.Stream(non_blocking=True)
book = []


def write(gust):
    book.append(sum(math.sin(k * gust) for k in range(30_000)))
    del book[:-100]


def bend(gust):
    y = reeds
    for _ in range(8):
        y = cupy.tanh(y @ wind)
    if cured:
        write(gust)
    else:
        stream.launch_host_func(write, gust)


with stream:
    for i in steps(stream.synchronize, each=20):
        bend(i)
