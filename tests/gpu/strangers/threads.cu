// Four threads launch on a stream each, and each waits for its own stream now and then.
//
// truth
// bound_by: compute
// steps: none
// must:
// may: under-filled-gpu latency-bound
// never: launch-bound sync-in-loop host-bound pageable-copy alloc-in-loop no-overlap tiny-copies tail-wave failed-calls no-cure
// why: While one thread waits the streams of the others are full, so the GPU is never without a kernel.
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

static void launches(float *x, int n) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 40; i++) work<<<n / 256, 256, 0, stream>>>(x, n, 40000);
        cudaStreamSynchronize(stream);
    }
}

int main() {
    const int n = 40 * 256;
    float *x;
    cudaMalloc(&x, 4 * n * sizeof(float));
    cudaMemset(x, 0, 4 * n * sizeof(float));
    cudaDeviceSynchronize();
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++) all.emplace_back(launches, x + i * n, n);
    for (auto &one : all) one.join();
    cudaDeviceSynchronize();
}
