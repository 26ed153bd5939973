"""Finds what has moved between pictures of the sky."""
import cupy as cp
import numpy as np

from gauge import cured, steps

SIDE, PICTURES, SHARE = 3072, 8, 0.998
pictures = cp.random.default_rng(0).standard_normal((PICTURES, SIDE, SIDE), dtype=cp.float32)
sky = cp.zeros((SIDE, SIDE), cp.float32)
found = cp.zeros((SIDE, SIDE), cp.float32)
blend = cp.ElementwiseKernel("T fresh", "T old, T rest", "rest = fresh - old; old = 0.9f * old + 0.1f * fresh", "blend")
mark = cp.ElementwiseKernel("T rest, T limit", "T found", "found = 0.95f * found + (rest > limit ? rest : T(0))", "mark")


def limit_of(rest):
    """What only few points are brighter than."""
    place = int(SHARE * rest.size)
    if cured:
        return cp.sort(rest.ravel())[place]
    return cp.float32(np.partition(cp.asnumpy(rest).ravel(), place)[place])


rest = cp.empty_like(sky)
for i in steps(cp.cuda.Device().synchronize, each=2):
    blend(pictures[i % PICTURES], sky, rest)
    mark(rest, limit_of(rest), found)
