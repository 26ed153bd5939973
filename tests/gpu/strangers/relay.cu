// Sends a long signal through a filter on the GPU, a piece at a time, on two streams that take turns.
#include <cmath>

#include "gauge.h"

const int PIECES = 16, COUNT = 1 << 21, THREADS = 256, LANES = 2;

__global__ void filter(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    for (int r = 0; r < rounds; r++) value = value * 0.98f + __sinf(value) * 0.02f;
    out[i] = value;
}

int main(int argc, char **argv) {
    const int behind = cured(argc, argv) ? LANES : 1;
    const size_t bytes = COUNT * sizeof(float);
    float *signal, *result, *in[LANES], *out[LANES];
    cudaStream_t lanes[LANES];
    cudaEvent_t done[LANES];
    cudaMallocHost(&signal, PIECES * bytes);
    cudaMallocHost(&result, PIECES * bytes);
    for (size_t i = 0; i < size_t(PIECES) * COUNT; i++) signal[i] = float(i % 1021) * 0.003f;
    for (int k = 0; k < LANES; k++) {
        cudaMalloc(&in[k], bytes);
        cudaMalloc(&out[k], bytes);
        cudaStreamCreateWithFlags(&lanes[k], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming);
    }

    double peaks = 0;
    int status = steps([&] {
        for (int piece = 0; piece < PIECES + behind - 1; piece++) {
            int k = piece % LANES, ready = piece - behind + 1;
            if (piece < PIECES) {
                cudaMemcpyAsync(in[k], signal + size_t(piece) * COUNT, bytes, cudaMemcpyHostToDevice, lanes[k]);
                filter<<<COUNT / THREADS, THREADS, 0, lanes[k]>>>(in[k], out[k], 500);
                cudaMemcpyAsync(result + size_t(piece) * COUNT, out[k], bytes, cudaMemcpyDeviceToHost, lanes[k]);
                cudaEventRecord(done[k], lanes[k]);
            }
            if (ready < 0) continue;
            cudaEventSynchronize(done[ready % LANES]);
            peaks += result[size_t(ready) * COUNT];
        }
    });
    std::printf("%.3f\n", peaks);
    return status;
}
