"""Waves on a pond of 120 tiles: each moves by itself for six rounds, and then the tiles learn of their neighbours' edges."""
import cupy as cp
import numpy as np

from gauge import cured, steps

TILES, SIDE, ROUNDS = 120, 32, 6
code = cp.RawModule(code=r"""
extern "C" __global__ void wave(const float *before, const float *now, float *next) {
    int x = threadIdx.x, y = threadIdx.y, at = blockIdx.x * 1024 + y * 32 + x;
    if (x == 0 || y == 0 || x == 31 || y == 31) { next[at] = now[at]; return; }
    float around = now[at - 1] + now[at + 1] + now[at - 32] + now[at + 32] - 4.0f * now[at];
    next[at] = 1.999f * now[at] - 0.999f * before[at] + 0.2f * around;
}
extern "C" __global__ void edges(float *pond, int tile, int left, int right, float lets_by) {
    int y = threadIdx.x;
    float *mine = pond + tile * 1024 + y * 32;
    mine[0] = lets_by * pond[left * 1024 + y * 32 + 30];
    mine[31] = lets_by * pond[right * 1024 + y * 32 + 1];
}
""")
wave, edges = code.get_function("wave"), code.get_function("edges")
cp.random.seed(0)
ponds = [cp.random.rand(TILES * SIDE * SIDE, dtype=cp.float32) for _ in range(3)]
lets_by = [np.float32(0.8 + 0.2 * tile / TILES) for tile in range(TILES)]
stream = cp.cuda.Stream(non_blocking=True)


def move():
    """Leaves what is now in ponds[1], and what was before in ponds[0]."""
    for k in range(ROUNDS):
        before, now, after = ponds[k % 3], ponds[(k + 1) % 3], ponds[(k + 2) % 3]
        wave((TILES,), (SIDE, SIDE), (before, now, after))


def meet():
    pond = ponds[1]
    for tile in range(TILES):
        left, right = np.int32((tile - 1) % TILES), np.int32((tile + 1) % TILES)
        edges((1,), (SIDE,), (pond, np.int32(tile), left, right, lets_by[tile]))


cp.cuda.Device().synchronize()
with stream:
    move()
    meet()
    stream.synchronize()
    stream.begin_capture()
    move()
    if cured:
        meet()
    day = stream.end_capture()
    for _ in steps(stream.synchronize, each=20):
        day.launch(stream)
        if not cured:
            meet()
