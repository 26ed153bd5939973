// Hammers four hundred plates, one after another, and goes on to the next ship without a look.
#include "gauge.h"

__global__ void hammer(float *x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}

int main(int argc, char **argv) {
    const int plates = 400, blocks = 8, together = cured(argc, argv) ? plates : 1;
    float *x;
    cudaMalloc(&x, plates * blocks * 256 * sizeof(float));
    cudaMemset(x, 0, plates * blocks * 256 * sizeof(float));
    return steps([&] {
        for (int plate = 0; plate < plates; plate += together) hammer<<<blocks * together, 256>>>(x + plate * blocks * 256, 10000);
    }, 50);
}
