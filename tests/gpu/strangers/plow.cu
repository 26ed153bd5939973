// Smooths two million series, each by one thread from its first value to its last.
#include "gauge.h"

const int SERIES = 1 << 21, TIMES = 512, THREADS = 256;

__global__ void fill(float *values, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        values[i] = float((i * 40503u) % 997) * 0.01f;
}

__global__ void smooth(const float *values, float *last, float share) {
    int one = blockIdx.x * blockDim.x + threadIdx.x;
    const float *at = values + one;
    float level = at[0];
#pragma unroll 16
    for (int t = 1; t < TIMES; t++) level += share * (at[size_t(t) * SERIES] - level);
    last[one] = level;
}

int main(int argc, char **argv) {
    float *values, *last;
    cudaMalloc(&values, size_t(SERIES) * TIMES * sizeof(float));
    cudaMalloc(&last, SERIES * sizeof(float));
    fill<<<4096, THREADS>>>(values, size_t(SERIES) * TIMES);
    return steps([&] { smooth<<<SERIES / THREADS, THREADS>>>(values, last, 0.1f); }, 10);
}
