"""Mixes candles of two kinds of wax; nothing shall be kept that is not needed."""
import cupy

from gauge import cured, steps

if not cured:
    cupy.cuda.set_allocator(None)
cupy.random.seed(0)
hard = cupy.random.rand(4 << 20, dtype=cupy.float32)
soft = cupy.random.rand(4 << 20, dtype=cupy.float32)


def mix(part):
    warm = hard * part + soft * (1.0 - part)
    clear = cupy.sqrt(warm * warm + 0.01)
    return clear - warm * 0.5


for i in steps(cupy.cuda.Device().synchronize, each=20):
    mix(i % 10 / 10)
