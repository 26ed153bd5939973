"""Weaves a basket: the GPU works over all of it, and then the CPU puts a knot into every row."""
import ctypes

import cupy
import cupyx
import numpy

from gauge import cured, steps

N = 1 << 24
if cured:
    here = cupyx.empty_pinned(N, numpy.float32)
    there = cupy.empty(N, cupy.float32)
else:
    held = cupy.cuda.malloc_managed(4 * N)
    here = numpy.frombuffer((ctypes.c_float * N).from_address(held.ptr), numpy.float32)
    there = cupy.ndarray(N, cupy.float32, held)
here[:] = 1.0
knots = numpy.zeros(N // 1024, numpy.float32)


def weave():
    if cured:
        there.set(here)
    cupy.multiply(there, 0.999, out=there)
    if cured:
        there.get(out=here)
    cupy.cuda.get_current_stream().synchronize()
    numpy.add(here[::1024], 1.0, out=knots)
    here[::1024] = knots


for _ in steps(lambda: None):
    weave()
