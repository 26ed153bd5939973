"""Takes many small arrays to the GPU with CuPy, and reads a number of each.

truth
needs: cupy numpy
bound_by: launch sync
steps: 1 48
must: sync-in-loop tiny-copies launch-bound
may: under-filled-gpu memory-chain
never: pageable-copy host-bound no-overlap alloc-in-loop failed-calls no-cure
why: 2 KB go up, two kernels of 2 µs run, 4 bytes come back: the CPU's calls take nearly all of the time.
"""
import cupy
import numpy

from stamp import loop

pieces = [numpy.random.rand(512).astype(numpy.float32) for _ in range(48)]


def step():
    total = 0.0
    for piece in pieces:
        x = cupy.asarray(piece)
        total += float((x * x).sum())
    return total


for _ in range(5):
    step()
for _ in loop(400, cupy.cuda.Device().synchronize, warm=5):
    step()
