"""Shades a relief from many sides, and adds the light up."""
import math

import cupy

import gauge

SIDE = 6144


def slopes(height):
    across = cupy.empty_like(height)
    down = cupy.empty_like(height)
    across[:, 1:] = height[:, 1:] - height[:, :-1]
    across[:, 0] = 0
    down[1:] = height[1:] - height[:-1]
    down[0] = 0
    return across, down


def shade(height, angle):
    across, down = slopes(height)
    steep = cupy.arctan(cupy.sqrt(across * across + down * down))
    facing = cupy.arctan2(down, across)
    return cupy.maximum(cupy.cos(steep) * 0.7 + cupy.sin(steep) * cupy.cos(facing - angle), 0)


pool = cupy.get_default_memory_pool()
at = cupy.arange(SIDE, dtype=cupy.float32)
height = cupy.sin(at * 0.031)[:, None] * cupy.cos(at * 0.017)[None, :] * 20
light = cupy.zeros((SIDE, SIDE), dtype=cupy.float32)

for i in gauge.steps(cupy.cuda.Device().synchronize, each=5):
    light += shade(height, cupy.float32(i * math.pi / 16))
    if not gauge.cured:
        pool.free_all_blocks()
