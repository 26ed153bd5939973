// Counts how often each value stands in a long row of bytes, and keeps the counts where the CPU can draw them.
#include "gauge.h"

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/fill.h>

__global__ void count(const unsigned char *bytes, size_t n, unsigned *counts) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n / 4; i += size_t(gridDim.x) * blockDim.x) {
        uchar4 four = reinterpret_cast<const uchar4 *>(bytes)[i];
        atomicAdd(&mine[four.x], 1u);
        atomicAdd(&mine[four.y], 1u);
        atomicAdd(&mine[four.z], 1u);
        atomicAdd(&mine[four.w], 1u);
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

int main(int argc, char **argv) {
    const bool together = cured(argc, argv);
    const size_t n = 64 << 20;
    std::vector<unsigned char> made(n);
    unsigned seed = 1;
    for (auto &byte : made) byte = (seed = seed * 1664525u + 1013904223u) >> 24;
    thrust::device_vector<unsigned char> bytes(made.begin(), made.end());
    thrust::device_vector<unsigned> counts(256);
    std::vector<unsigned> drawn(256);
    return steps([&] {
        thrust::fill(counts.begin(), counts.end(), 0u);
        count<<<1056, 256>>>(thrust::raw_pointer_cast(bytes.data()), n, thrust::raw_pointer_cast(counts.data()));
        if (together)
            thrust::copy(counts.begin(), counts.end(), drawn.begin());
        else
            for (size_t i = 0; i < counts.size(); i++) drawn[i] = counts[i];
    });
}
