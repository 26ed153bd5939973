"""Lets warmth spread through a block of ice on which a walrus lies, and keeps a small picture of each hour."""
import collections

import cupy
import numpy

import gauge

SIDE, ROUNDS, APART = 384, 24, 8

spread = cupy.RawKernel(
    r"""
extern "C" __global__ void spread(const float *old, float *now, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    size_t plane = (size_t)side * side, at = z * plane + (size_t)y * side + x;
    float here = old[at];
    float left = x ? old[at - 1] : here, right = x < side - 1 ? old[at + 1] : here;
    float front = y ? old[at - side] : here, back = y < side - 1 ? old[at + side] : here;
    float below = z ? old[at - plane] : here, above = z < side - 1 ? old[at + plane] : here;
    now[at] = here + 0.15f * (left + right + front + back + below + above - 6.0f * here);
}
""",
    "spread",
)


class Album:
    """The last hundred pictures, of each eighth point along each axis."""

    def __init__(self):
        self.pictures = collections.deque(maxlen=100)

    def add(self, ice):
        if gauge.cured:
            small = cupy.asnumpy(ice[::APART, ::APART, ::APART])
        else:
            small = cupy.asnumpy(ice)[::APART, ::APART, ::APART].copy()
        self.pictures.append(small.astype(numpy.float16))


def hour(ice, spare):
    for _ in range(ROUNDS):
        spread((SIDE // 128, SIDE, SIDE), (128,), (ice, spare, numpy.int32(SIDE)))
        ice, spare = spare, ice
    ice[-1, SIDE // 4 : SIDE // 2, SIDE // 4 : SIDE // 2] = 36.0
    return ice, spare


ice = cupy.full((SIDE, SIDE, SIDE), -8.0, cupy.float32)
spare = cupy.empty_like(ice)
album = Album()

for _ in gauge.steps(cupy.cuda.Device().synchronize):
    ice, spare = hour(ice, spare)
    album.add(ice)
