// Reads where nothing is, after 300 good launches; everything behind it fails, too.
//
// truth
// bound_by: any
// steps: none
// must: failed-calls
// may: launch-bound sync-in-loop under-filled-gpu latency-bound cold-start no-cure
// never: pageable-copy alloc-in-loop no-overlap tiny-copies host-bound
// ends: 1
// why: The kernel's address is not mapped: error 700, and what was launched behind it never ran.
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
    for (int step = 0; step < 400; step++) {
        float *of = step == 300 ? reinterpret_cast<float *>(0x1000) : x;
        work<<<n / 256, 256>>>(of, n, 20000);
        if (step % 10 == 9 && cudaDeviceSynchronize() != cudaSuccess && step > 320) break;
    }
    return cudaDeviceSynchronize() != cudaSuccess;
}
