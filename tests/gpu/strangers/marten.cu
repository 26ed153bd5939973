// Eight microphones of a stage, a stream each: a hall is folded into the sound of each, and its loudness is measured.
#include "gauge.h"

constexpr int mics = 8, block = 4096, taps = 32768;

// `sound` holds the last `taps` values and the block that follows them.
__global__ void hall(const float *sound, const float *echo, float *wet) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) sum += echo[k] * sound[i + taps - k];
    wet[i] = sum;
}

__global__ void loudness(const float *wet, float *sums) {
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = wet[i] * wet[i];
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

int main(int argc, char **argv) {
    const bool own = cured(argc, argv);
    cudaStream_t stream[mics];
    float *sound[mics], *wet[mics], *played[mics], *sums[mics], *echo;
    std::vector<float> said(block + taps), room(taps);
    for (size_t i = 0; i < said.size(); i++) said[i] = float(i * 7919 % 2000) / 1000 - 1;
    for (size_t k = 0; k < room.size(); k++) room[k] = float(k * 104729 % 1000) / 1000 / (k + 100);
    cudaMalloc(&echo, taps * sizeof(float));
    cudaMemcpy(echo, room.data(), taps * sizeof(float), cudaMemcpyHostToDevice);
    for (int m = 0; m < mics; m++) {
        cudaStreamCreate(&stream[m]);
        cudaMalloc(&sound[m], said.size() * sizeof(float));
        cudaMalloc(&wet[m], block * sizeof(float));
        cudaMalloc(&played[m], block * sizeof(float));
        cudaMalloc(&sums[m], block / 256 * sizeof(float));
        cudaMemcpy(sound[m], said.data(), said.size() * sizeof(float), cudaMemcpyHostToDevice);
    }
    return steps([&] {
        for (int m = 0; m < mics; m++) {
            hall<<<block / 256, 256, 0, stream[m]>>>(sound[m], echo, wet[m]);
            if (own)
                cudaMemcpyAsync(played[m], wet[m], block * sizeof(float), cudaMemcpyDeviceToDevice, stream[m]);
            else
                cudaMemcpyAsync(played[m], wet[m], block * sizeof(float), cudaMemcpyDeviceToDevice);
            loudness<<<block / 256, 256, 0, stream[m]>>>(wet[m], sums[m]);
        }
    }, 20);
}
