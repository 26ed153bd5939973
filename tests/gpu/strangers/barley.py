"""Moves a million grains and puts them in the order of the field's cells, as the next move needs them."""
import cupy
import numpy

from gauge import cured, steps

cupy.random.seed(0)
grains = cupy.random.rand(1 << 20, 2, dtype=cupy.float32)
winds = cupy.random.rand(256 * 256, 2, dtype=cupy.float32) - 0.5


def cells(grains):
    at = (grains * 256).astype(cupy.int32)
    return at[:, 0] * 256 + at[:, 1]


def blow(grains):
    cell = cells(grains)
    if cured:
        order = cupy.argsort(cell)
    else:
        order = cupy.asarray(numpy.argsort(cell.get()))
    grains = grains[order] + 0.001 * winds[cell[order]]
    return grains % 1.0


for _ in steps(cupy.cuda.Device().synchronize, each=4):
    grains = blow(grains)
