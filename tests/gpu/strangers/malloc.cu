// Allocates its buffers in every step and frees them again; cured, it does so once.
//
// truth
// bound_by: host sync
// steps: 1
// must: alloc-in-loop
// may: launch-bound sync-in-loop
// never: pageable-copy host-bound no-overlap tiny-copies under-filled-gpu failed-calls
// cured: alloc-in-loop
// cured_bound_by: compute memory
// cured_never: alloc-in-loop launch-bound sync-in-loop host-bound
// why: cudaMalloc and cudaFree of 128 MB take longer than the three operations on them.
#include "stamp.h"

__global__ void add(float *to, const float *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += 0.5f * from[i];
}

int main() {
    bool once = cured();
    const int n = 32 << 20;
    float *a = nullptr, *b = nullptr;
    auto take = [&] { cudaMalloc(&a, n * sizeof(float)), cudaMalloc(&b, n * sizeof(float)); };
    auto give = [&] { cudaFree(a), cudaFree(b); };
    Stamps stamps;
    if (once) take();
    for (int step = 0; step < (once ? 6000 : 800); step++) {
        stamps.step();
        if (!once) take();
        cudaMemsetAsync(a, 0, n * sizeof(float));
        cudaMemsetAsync(b, 0, n * sizeof(float));
        add<<<n / 256, 256>>>(a, b, n);
        add<<<n / 256, 256>>>(b, a, n);
        if (!once) give();
    }
    stamps.end(once);
    if (once) give();
}
