"""Lets waves run over a large field, back and forth between the same arrays."""
import cupy

import gauge

SIDE = 12288

push = cupy.ElementwiseKernel(
    "float32 now, float32 speed, float32 stiff",
    "float32 new_now, float32 new_speed",
    "new_speed = speed * 0.999f - stiff * now * 0.01f; new_now = now + new_speed * 0.01f",
    "push",
)

pool = cupy.get_default_memory_pool()
at = cupy.arange(SIDE, dtype=cupy.float32)
now = cupy.sin(at * 0.02)[:, None] * cupy.cos(at * 0.05)[None, :]
stiff = cupy.abs(now) + 0.1
speed, other_now, other_speed = (cupy.zeros((SIDE, SIDE), dtype=cupy.float32) for _ in range(3))

for i in gauge.steps(cupy.cuda.Device().synchronize, each=10):
    push(now, speed, stiff, other_now, other_speed)
    push(other_now, other_speed, stiff, now, speed)
    pool.free_all_blocks()
