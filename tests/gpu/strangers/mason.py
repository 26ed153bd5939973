"""Four masons, a thread each, cut one large stone after another and wait for their own."""
import threading

import cupy

from gauge import passes

done, over = [0] * 4, threading.Event()
cut = cupy.RawKernel(r"""
extern "C" __global__ void cut(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < 20000; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}""", "cut")


def work(n):
    stone = stones[n]
    with benches[n]:
        while not over.is_set():
            for _ in range(5):
                cut((stone.size // 256,), (256,), (stone,))
            benches[n].synchronize()
            done[n] += 1


stones = [cupy.zeros(4 << 20, cupy.float32) for _ in done]
benches = [cupy.cuda.Stream(non_blocking=True) for _ in done]
cupy.cuda.Device().synchronize()
threads = [threading.Thread(target=work, args=(n,), name=f"mason-{n}") for n in range(4)]
for thread in threads:
    thread.start()
while sum(done) < 8:
    over.wait(0.1)
passes(lambda: sum(done))
over.set()
for thread in threads:
    thread.join()
