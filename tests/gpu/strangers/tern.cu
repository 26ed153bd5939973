// Smooths six tracks, a stream each, and keeps a tally of what has been sent.
#include "gauge.h"

__global__ void smooth(float *x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = 0.5f * v + 0.25f * __sinf(v);
    x[i] = v;
}

__global__ void note(int *tally, int track) { tally[track]++; }

int main(int argc, char **argv) {
    const int tracks = 6, n = 16 * 256;
    const unsigned flags = cured(argc, argv) ? cudaStreamNonBlocking : cudaStreamDefault;
    cudaStream_t stream[tracks];
    float *x;
    int *tally;
    cudaMalloc(&x, tracks * n * sizeof(float));
    cudaMalloc(&tally, tracks * sizeof(int));
    cudaMemset(x, 0, tracks * n * sizeof(float));
    cudaMemset(tally, 0, tracks * sizeof(int));
    for (int t = 0; t < tracks; t++) cudaStreamCreateWithFlags(&stream[t], flags);
    return steps([&] {
        for (int round = 0; round < 8; round++)
            for (int t = 0; t < tracks; t++) {
                smooth<<<n / 256, 256, 0, stream[t]>>>(x + t * n, n, 4000);
                note<<<1, 1>>>(tally, t);
            }
        cudaDeviceSynchronize();
    });
}
