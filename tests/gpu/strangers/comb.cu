// The energy of many spectra, and how many of them stand out.
#include "gauge.h"

__global__ void fill(float *spectra, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        spectra[i] = float((i * 2654435761u) % 1000) * 0.001f;
}

__global__ void energy(const float *spectra, float *out, int rows, int bins, int lanes) {
    int id = blockIdx.x * blockDim.x + threadIdx.x, row = id / lanes, lane = id % lanes;
    if (row >= rows) return;
    const float *at = spectra + size_t(row) * bins;
    float sum = 0;
    for (int i = lane; i < bins; i += lanes) sum += at[i] * at[i];
    for (int half = lanes / 2; half; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (lane == 0) out[row] = sum;
}

__global__ void outstanding(const float *energies, int rows, float level, int *number) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int ours = __syncthreads_count(id < rows && energies[id] > level);
    if (threadIdx.x == 0 && ours) atomicAdd(number, ours);
}

int main(int argc, char **argv) {
    const int rows = 1 << 18, bins = 1024, threads = 256;
    const int lanes = cured(argc, argv) ? 32 : 1;
    float *spectra, *energies;
    int *number;
    cudaMalloc(&spectra, size_t(rows) * bins * sizeof(float));
    cudaMalloc(&energies, rows * sizeof(float));
    cudaMalloc(&number, sizeof(int));
    cudaMemset(number, 0, sizeof(int));
    fill<<<2048, threads>>>(spectra, size_t(rows) * bins);

    return steps([&] {
        energy<<<rows / threads * lanes, threads>>>(spectra, energies, rows, bins, lanes);
        outstanding<<<rows / threads, threads>>>(energies, rows, 350.0f, number);
    }, 10);
}
