"""Polishes two thousand stones at once by one large matrix, again and again."""
import os
import sys

if "--cured" in sys.argv:
    os.environ["CUPY_TF32"] = "1"
import cupy

from gauge import steps

cupy.random.seed(0)
wheel = cupy.random.standard_normal((8192, 8192), dtype=cupy.float32) * (0.9 / 8192**0.5)
stones = cupy.random.standard_normal((8192, 2048), dtype=cupy.float32)


def polish(stones):
    return cupy.tanh(wheel @ stones)


for _ in steps(cupy.cuda.Device().synchronize, each=30):
    stones = polish(stones)
