"""Fits a plane of weights to readings by momentum: slopes from products of matrices, then the weights take a step."""
import os

os.environ["CUPY_TF32"] = "1"
import cupy
import numpy

from gauge import cured, steps

xp = cupy if cured else numpy
cupy.random.seed(0)
readings = cupy.random.standard_normal((4096, 4096), dtype=cupy.float32)
wanted = cupy.random.standard_normal((4096, 2048), dtype=cupy.float32)
weights = xp.zeros((4096, 2048), xp.float32)
pace = xp.zeros_like(weights)
flying = cupy.asarray(weights)


def dive():
    global weights, pace
    off = readings @ flying - wanted
    slope = readings.T @ off
    if not cured:
        slope = slope.get()
    pace *= 0.9
    pace += slope
    weights -= 1e-6 * pace
    if not cured:
        flying.set(weights)


for _ in steps(cupy.cuda.Device().synchronize, each=4):
    dive()
