// Four locks of a canal, a stream each: water goes from one to the next when the one before has let it.
#include "gauge.h"

__global__ void flow(const float *from, float *to, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = from[i];
    for (int k = 0; k < rounds; k++) v = v * 0.9999f + 0.5f;
    to[i] = v;
}

int main() {
    const int locks = 4, n = 4 << 20;
    cudaStream_t stream[locks];
    cudaEvent_t open[locks];
    float *water[locks];
    for (int k = 0; k < locks; k++) {
        cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&open[k], cudaEventDisableTiming);
        cudaMalloc(&water[k], n * sizeof(float));
        cudaMemset(water[k], 0, n * sizeof(float));
    }
    cudaDeviceSynchronize();
    return steps([&] {
        for (int k = 0; k < locks; k++) {
            int before = (k + locks - 1) % locks;
            cudaStreamWaitEvent(stream[k], open[before], 0);
            flow<<<n / 256, 256, 0, stream[k]>>>(water[before], water[k], n, 4000);
            cudaEventRecord(open[k], stream[k]);
        }
    }, 200);
}
