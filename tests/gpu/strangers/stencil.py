"""Spreads heat over a grid with a kernel compiled by Numba, and looks at a few cells now and then.

truth
needs: numba numpy
bound_by: launch
steps: 1 20 40
must: launch-bound
may: sync-in-loop tiny-copies latency-bound memory-chain
never: pageable-copy host-bound alloc-in-loop no-overlap under-filled-gpu failed-calls no-cure
why: The kernel takes some 4 µs and its launch from Python several times that, forty times a step.
"""
import numpy
from numba import cuda

from stamp import loop


@cuda.jit
def heat(old, new):
    j, i = cuda.grid(2)
    if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
        around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
        new[i, j] = around * numpy.float32(0.25)


a = cuda.to_device(numpy.random.rand(1024, 1024).astype(numpy.float32))
b = cuda.to_device(numpy.zeros((1024, 1024), numpy.float32))
launch = heat[(32, 128), (32, 8)]


def step():
    for _ in range(20):
        launch(a, b)
        launch(b, a)
    return a[512, :8].copy_to_host()


for _ in range(3):
    step()
for _ in loop(1200, cuda.synchronize, warm=3):
    step()
