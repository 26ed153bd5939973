// Lets two barrels ripen; nobody but the GPU touches what is in them.
#include "gauge.h"

__global__ void ripen(float *a, float *b, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    float v = a[i] * 0.5f + b[i] * 0.25f + 1.0f;
    a[i] = v;
    b[i] = v * 0.5f;
}

int main() {
    const size_t n = 64 << 20;
    float *a, *b;
    cudaMallocManaged(&a, n * sizeof(float));
    cudaMallocManaged(&b, n * sizeof(float));
    cudaMemset(a, 0, n * sizeof(float));
    cudaMemset(b, 0, n * sizeof(float));
    return steps([&] { ripen<<<n / 256, 256>>>(a, b, n); }, 300);
}
