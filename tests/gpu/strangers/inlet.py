"""Reads clips of video from pinned memory, and finds for each pixel where it has moved to."""
import cupy as cp
import cupyx
import numpy as np

from gauge import cured, steps

FRAMES, HEIGHT, WIDTH = 64, 1080, 1920
best_shift = cp.RawKernel(
    r"""
extern "C" __global__ void best_shift(const unsigned char *clip, unsigned char *out, int frames, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, frame = blockIdx.z + 1;
    if (x >= width) return;
    const unsigned char *now = clip + (size_t)frame * height * width, *before = now - (size_t)height * width;
    int here = now[y * width + x], least = 1 << 30, best = 0, k = 0;
    for (int dy = -3; dy <= 3; dy++)
        for (int dx = -3; dx <= 3; dx++, k++) {
            int v = min(max(y + dy, 0), height - 1), u = min(max(x + dx, 0), width - 1);
            int cost = 4 * abs(here - (int)before[v * width + u]) + abs(dx) + abs(dy);
            if (cost < least) { least = cost; best = k; }
        }
    out[(size_t)(frame - 1) * height * width + y * width + x] = best;
}
""",
    "best_shift",
)
rng = np.random.default_rng(0)
clips = [cupyx.empty_pinned((FRAMES, HEIGHT, WIDTH), np.uint8) for _ in range(3)]
for clip in clips:
    clip[...] = rng.integers(0, 256, (1, HEIGHT, WIDTH), dtype=np.uint8)
slots = [cp.empty((FRAMES, HEIGHT, WIDTH), cp.uint8) for _ in range(2)]
shifts = cp.empty((FRAMES - 1, HEIGHT, WIDTH), cp.uint8)
compute = cp.cuda.Stream(non_blocking=True)
upload = cp.cuda.Stream(non_blocking=True) if cured else compute
filled = [cp.cuda.Event(disable_timing=True) for _ in slots]
freed = [cp.cuda.Event(disable_timing=True) for _ in slots]


def fetch(i):
    upload.wait_event(freed[i % 2])
    slots[i % 2].set(clips[i % 3], stream=upload)
    filled[i % 2].record(upload)


def analyse(i):
    with compute:
        compute.wait_event(filled[i % 2])
        grid = ((WIDTH + 255) // 256, HEIGHT, FRAMES - 1)
        best_shift(grid, (256,), (slots[i % 2], shifts, np.int32(FRAMES), np.int32(HEIGHT), np.int32(WIDTH)))
        freed[i % 2].record(compute)


fetch(0)
for i in steps(cp.cuda.Device().synchronize, each=10):
    fetch(i + 1)
    analyse(i)
