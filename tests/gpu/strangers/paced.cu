// Works on thirty frames a second, each when its time has come: there is nothing to save.
//
// truth
// bound_by: host
// steps: 1
// must: no-cure
// may:
// never: host-bound launch-bound sync-in-loop pageable-copy alloc-in-loop no-overlap tiny-copies under-filled-gpu tail-wave failed-calls
// why: A frame takes some 5 ms of the 33 that lie between two; the clock paces the program and not the CPU's work.
#include "stamp.h"
#include <thread>

// A chain of multiply-adds for each of n values.
__global__ void work(float *x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}

int main() {
    const int n = 2 << 20;
    float *frame, *there;
    cudaMallocHost(&frame, n * sizeof(float));
    std::fill(frame, frame + n, 1.0f);
    cudaMalloc(&there, n * sizeof(float));
    Stamps stamps;
    auto next = std::chrono::steady_clock::now();
    for (int step = 0; step < 120; step++) {
        next += std::chrono::nanoseconds(1000000000 / 30);
        std::this_thread::sleep_until(next);
        stamps.step();
        cudaMemcpyAsync(there, frame, n * sizeof(float), cudaMemcpyHostToDevice);
        work<<<n / 256, 256>>>(there, n, 60000);
        cudaMemcpyAsync(frame, there, n * sizeof(float), cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize();
    }
    stamps.end();
}
