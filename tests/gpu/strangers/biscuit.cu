// Lets biscuits cool: each thread follows one through its thirty-two layers, by an implicit step that solves a row of equations.
#include "gauge.h"

const int BISCUITS = 1 << 22, LAYERS = 32, THREADS = 128;

__global__ void fill(float *warmth, float *passes) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    warmth[i] = 180.0f + float((i * 2654435761u) % 1000) * 0.01f;
    if (i < BISCUITS) passes[i] = 0.1f + float(i % 89) * 0.01f;
}

// What lies in shared memory, a row of PITCH numbers a thread: the factors and the right sides of the equations.
template <int PITCH> __global__ void cool(const float *warmth, const float *passes, float *cooler) {
    __shared__ float factors[THREADS * PITCH], sides[THREADS * PITCH];
    int biscuit = blockIdx.x * blockDim.x + threadIdx.x;
    float *factor = factors + threadIdx.x * PITCH, *side = sides + threadIdx.x * PITCH;
    float r = passes[biscuit], before = 0, last = 0;
#pragma unroll 4
    for (int layer = 0; layer < LAYERS; layer++) {
        float here = warmth[size_t(layer) * BISCUITS + biscuit];
        float own = __fdividef(1.0f, 1.0f + 2.0f * r + r * before);
        before = -r * own;
        last = (here + r * last) * own;
        factor[layer] = before;
        side[layer] = last;
    }
    float next = 0;
#pragma unroll 4
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        next = side[layer] - factor[layer] * next;
        cooler[size_t(layer) * BISCUITS + biscuit] = next;
    }
}

int main(int argc, char **argv) {
    float *warmth, *cooler, *passes;
    cudaMalloc(&warmth, size_t(BISCUITS) * LAYERS * sizeof(float));
    cudaMalloc(&cooler, size_t(BISCUITS) * LAYERS * sizeof(float));
    cudaMalloc(&passes, BISCUITS * sizeof(float));
    fill<<<size_t(BISCUITS) * LAYERS / 256, 256>>>(warmth, passes);
    auto kernel = cured(argc, argv) ? cool<LAYERS + 1> : cool<LAYERS>;
    return steps([&] { kernel<<<BISCUITS / THREADS, THREADS>>>(warmth, passes, cooler); }, 10);
}
