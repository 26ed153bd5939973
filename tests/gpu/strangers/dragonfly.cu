// Four lakes, a stream each: the flies of each are driven on by the wind, and a counter is set back before each day.
#include "gauge.h"

constexpr int lakes = 4, flies = 8 << 20;

__global__ void drift(float *fly, unsigned *landed, int gusts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = fly[i];
    for (int k = 0; k < gusts; k++) v = v * 0.9999f + 0.5f;
    fly[i] = v;
    if (v < 0.0f) atomicAdd(landed, 1u);
}

int main() {
    cudaStream_t stream[lakes];
    float *fly[lakes];
    unsigned *landed;
    cudaMalloc(&landed, lakes * sizeof(unsigned));
    for (int k = 0; k < lakes; k++) {
        cudaStreamCreate(&stream[k]);
        cudaMalloc(&fly[k], flies * sizeof(float));
        cudaMemset(fly[k], 0, flies * sizeof(float));
    }
    return steps([&] {
        for (int k = 0; k < lakes; k++) {
            cudaMemsetAsync(landed + k, 0, sizeof(unsigned));
            drift<<<flies / 256, 256, 0, stream[k]>>>(fly[k], landed + k, 6000);
        }
    }, 20);
}
