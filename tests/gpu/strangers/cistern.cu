// Draws two buffers a step, fills one from the other, and gives them back.
#include <cstdint>

#include "gauge.h"

__global__ void pour(float *to, const float *from, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) to[i] = from[i] * 0.5f + 1.0f;
}

int main(int argc, char **argv) {
    const size_t n = 64 << 20, bytes = n * sizeof(float);
    uint64_t keep = cured(argc, argv) ? UINT64_MAX : 0;
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return steps([&] {
        float *a, *b;
        cudaMallocAsync(&a, bytes, stream);
        cudaMallocAsync(&b, bytes, stream);
        cudaMemsetAsync(a, 0, bytes, stream);
        pour<<<n / 256, 256, 0, stream>>>(b, a, n);
        cudaFreeAsync(a, stream);
        cudaFreeAsync(b, stream);
        cudaStreamSynchronize(stream);
    });
}
