// Lets the water of a long canal even out, reach by reach.
#include "gauge.h"

const size_t REACHES = size_t(1) << 28;
const int TIDES = 6, THREADS = 256;

static void check(const char *what) {
    cudaError_t seen = cudaGetLastError();
    if (seen == cudaSuccess) seen = cudaDeviceSynchronize();
    if (seen != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(seen));
        std::exit(1);
    }
}

__global__ void fill(float4 *water) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    float at = float(i & 1023);
    water[i] = make_float4(at, at + 1, at + 2, at + 3);
}

__global__ void even_out(const float4 *water, float4 *evened) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    float4 w = water[i];
    float mean = 0.25f * (w.x + w.y + w.z + w.w);
    evened[i] = make_float4(w.x + 0.1f * (mean - w.x), w.y + 0.1f * (mean - w.y), w.z + 0.1f * (mean - w.z), w.w + 0.1f * (mean - w.w));
}

int main(int argc, char **argv) {
    const unsigned blocks = REACHES / 4 / THREADS;
    float4 *water, *evened;
    cudaMalloc(&water, REACHES * sizeof(float));
    cudaMalloc(&evened, REACHES * sizeof(float));
    check("digging");
    fill<<<blocks, THREADS>>>(water);
    check("fill");
    return steps([&] {
        for (int tide = 0; tide < TIDES; tide++) {
            even_out<<<blocks, THREADS>>>(water, evened);
            check("even_out");
            std::swap(water, evened);
        }
    });
}
