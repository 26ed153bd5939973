// One of its two kernels asks for blocks of 2,048 threads, which no GPU has, and nobody looks at the error.
//
// truth
// bound_by: compute
// steps: 1
// must: failed-calls
// may: latency-bound
// never: pageable-copy alloc-in-loop no-overlap tiny-copies host-bound launch-bound sync-in-loop under-filled-gpu no-cure
// why: Every second launch returns an error and leaves nothing; the other kernel keeps the GPU busy.
#include "stamp.h"

// A chain of multiply-adds for each of n values.
__global__ void work(float *x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}

int main() {
    const int n = 1 << 20;
    float *x;
    cudaMalloc(&x, n * sizeof(float));
    cudaMemset(x, 0, n * sizeof(float));
    cudaDeviceSynchronize();
    Stamps stamps;
    for (int step = 0; step < 800; step++) {
        stamps.step();
        work<<<n / 256, 256>>>(x, n, 20000);
        work<<<n / 2048, 2048>>>(x, n, 100);
        cudaMemsetAsync(x, 0, 4096);
    }
    stamps.end(true);
}
