// Lets sixty-four strings be moved by a sound; each thread takes a place of the sound to begin at, and all strings.
#include "gauge.h"

const int STRINGS = 64, PLACES = 1 << 20, LENGTH = 192, THREADS = 256;

__global__ void fill(float *sound) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sound[i] = float((i * 40503u) % 997) * 0.001f;
}

template <int MOST, int LEAST>
__global__ void __launch_bounds__(MOST, LEAST) ring(const float *sound, float *loudest) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    float string[STRINGS];
#pragma unroll
    for (int s = 0; s < STRINGS; s++) string[s] = 0;
    for (int t = 0; t < LENGTH; t++) {
        float heard = sound[(place + t * THREADS) & (PLACES - 1)];
#pragma unroll
        for (int s = 0; s < STRINGS; s++) string[s] = string[s] * (0.5f + 0.0075f * s) + heard;
    }
    float most = 0;
#pragma unroll
    for (int s = 0; s < STRINGS; s++) most = fmaxf(most, fabsf(string[s]) * (0.5f - 0.0075f * s));
    loudest[place] = most;
}

int main(int argc, char **argv) {
    float *sound, *loudest;
    cudaMalloc(&sound, PLACES * sizeof(float));
    cudaMalloc(&loudest, PLACES * sizeof(float));
    fill<<<PLACES / THREADS, THREADS>>>(sound);
    auto kernel = cured(argc, argv) ? ring<THREADS, 2> : ring<1024, 2>;
    return steps([&] { kernel<<<PLACES / THREADS, THREADS>>>(sound, loudest); }, 10);
}
