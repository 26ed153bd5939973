"""Clusters two million points with CuPy; the CPU reads how far the centres moved, to know when to stop.

truth
needs: cupy
bound_by: compute memory
steps: 1
must:
may: memory-chain latency-bound idle-tensor-cores sync-in-loop:info tail-wave
never: sync-in-loop:warning pageable-copy host-bound launch-bound no-overlap alloc-in-loop no-cure
why: An iteration goes through gigabytes on the GPU; the one value that is read decides whether there is a next one.
"""
import cupy

from stamp import loop

cupy.random.seed(1)
points = cupy.random.rand(2_000_000, 16, dtype=cupy.float32)
numbers = cupy.arange(64)
centres = [points[:64].copy()]


def step():
    of = centres[0]
    distance = (of * of).sum(axis=1) - 2 * (points @ of.T)
    label = distance.argmin(axis=1)
    member = (label[:, None] == numbers).astype(cupy.float32)
    count = member.sum(axis=0)
    new = (member.T @ points) / cupy.maximum(count, 1)[:, None]
    moved = float(cupy.abs(new - of).max())
    centres[0] = new
    return moved


for _ in range(3):
    step()
for _ in loop(200, cupy.cuda.Device().synchronize, warm=3):
    if step() == 0.0:
        break
