// A kernel and the CPU take turns on managed memory: each step the CPU goes through all that the kernel wrote.
//
// truth
// bound_by: host compute
// steps: 1
// must: host-bound no-cure page-migration
// may:
// never: sync-in-loop pageable-copy launch-bound alloc-in-loop no-overlap tiny-copies under-filled-gpu failed-calls
// why: The CPU reads the kernel's result, so it has to wait for it; pages move by faults, which no record shows.
#include "stamp.h"

__global__ void grow(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 0.5f + 1.0f;
}

int main() {
    const int n = 8 << 20;
    float *x;
    cudaMallocManaged(&x, n * sizeof(float));
    std::fill(x, x + n, 1.0f);
    Stamps stamps;
    volatile float seen = 0;
    for (int step = 0; step < 100; step++) {
        stamps.step();
        grow<<<n / 256, 256>>>(x, n);
        cudaDeviceSynchronize();
        float sum = 0;
        for (int i = 0; i < n; i++) sum += x[i], x[i] -= 0.25f;
        seen = sum;
    }
    stamps.end();
    return seen < 0;
}
