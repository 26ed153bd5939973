"""Lets eight rows of cells grow, each on a stream, and counts the rows that were begun on the GPU."""
import cupy

from gauge import cured, steps

grow = cupy.RawKernel(r"""
extern "C" __global__ void grow(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < 100000; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}""", "grow")
rows = [cupy.zeros(12 * 256, cupy.float32) for _ in range(8)]
streams = [cupy.cuda.Stream(non_blocking=cured) for _ in rows]
begun = cupy.zeros(1, cupy.int64)


def season():
    for row, stream in zip(rows, streams):
        with stream:
            grow((12,), (256,), (row,))
        cupy.add(begun, 1, out=begun)


for _ in steps(cupy.cuda.Device().synchronize, each=100):
    season()
