// Takes 64 MB up and down around a kernel, from ordinary memory; cured, from pinned memory.
//
// truth
// bound_by: copy sync
// steps: 1
// must: pageable-copy
// may: no-overlap copy-bound sync-in-loop low-bandwidth
// never: launch-bound host-bound alloc-in-loop tiny-copies under-filled-gpu failed-calls no-cure
// cured: pageable-copy
// cured_bound_by: copy
// cured_never: pageable-copy launch-bound host-bound alloc-in-loop
// why: The copies take some 10 ms each way by way of the driver's own buffer, and the kernel a fraction of that.
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
    bool pinned = cured();
    const int n = 16 << 20;
    const size_t bytes = n * sizeof(float);
    float *in, *out, *there;
    if (pinned) {
        cudaMallocHost(&in, bytes), cudaMallocHost(&out, bytes);
    } else {
        in = static_cast<float *>(std::malloc(bytes)), out = static_cast<float *>(std::malloc(bytes));
    }
    std::fill(in, in + n, 1.0f), std::fill(out, out + n, 0.0f);
    cudaMalloc(&there, bytes);
    Stamps stamps;
    for (int step = 0; step < (pinned ? 600 : 150); step++) {
        stamps.step();
        cudaMemcpy(there, in, bytes, cudaMemcpyHostToDevice);
        work<<<n / 256, 256>>>(there, n, 500);
        cudaMemcpy(out, there, bytes, cudaMemcpyDeviceToHost);
    }
    stamps.end();
}
