"""Lets mould grow on a loaf; how warm it is changes from day to day."""
import random

import cupy
import numpy

import gauge

SIDE, HOURS = 4096, 12
TEXT = """
extern "C" __global__ void grow(const float *now, float *next, const int side, const float given) {
    const float warmth = %s;
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= side) return;
    const float *row = now + (size_t)y * side;
    const float *above = now + (size_t)((y + side - 1) %% side) * side, *below = now + (size_t)((y + 1) %% side) * side;
    const float beside = row[(x + side - 1) %% side] + row[(x + 1) %% side] + above[x] + below[x] - 4.0f * row[x];
    next[(size_t)y * side + x] = fminf(row[x] + warmth * (0.2f * beside + 0.01f * row[x] * (1.0f - row[x])), 1.0f);
}
"""


def day(now, other, warmth):
    grow = cupy.RawKernel(TEXT % ("given" if gauge.cured else f"{warmth:.8f}f"), "grow")
    for _ in range(HOURS):
        grow((SIDE // 256, SIDE), (256,), (now, other, numpy.int32(SIDE), numpy.float32(warmth)))
        now, other = other, now
    return now, other


now = cupy.random.rand(SIDE, SIDE, dtype=cupy.float32) * 0.1
other = cupy.empty_like(now)
weather = random.Random()

for _ in gauge.steps(cupy.cuda.Device().synchronize, each=2, warm=3):
    now, other = day(now, other, weather.uniform(0.2, 0.9))
