// A pipeline done right: pinned memory, three streams by turns, and kernels that take longer than the copies beside them.
//
// truth
// bound_by: compute
// steps: none
// must:
// may: latency-bound same-direction-streams
// never: pageable-copy no-overlap sync-in-loop launch-bound host-bound alloc-in-loop tiny-copies under-filled-gpu low-bandwidth copy-bound failed-calls no-cure
// why: Copies up and down run beside kernels, which take more of the time than either; the kernels never wait.
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
    const int n = 8 << 20, streams = 3;
    const size_t bytes = n * sizeof(float);
    cudaStream_t stream[streams];
    float *in[streams], *out[streams], *there[streams];
    for (int i = 0; i < streams; i++) {
        cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking);
        cudaMallocHost(&in[i], bytes), cudaMallocHost(&out[i], bytes), cudaMalloc(&there[i], bytes);
        std::fill(in[i], in[i] + n, 1.0f);
    }
    Stamps stamps;
    for (int step = 0; step < 1500; step++) {
        stamps.step();
        int i = step % streams;
        cudaMemcpyAsync(there[i], in[i], bytes, cudaMemcpyHostToDevice, stream[i]);
        work<<<n / 256, 256, 0, stream[i]>>>(there[i], n, 6000);
        cudaMemcpyAsync(out[i], there[i], bytes, cudaMemcpyDeviceToHost, stream[i]);
    }
    stamps.end(true);
}
