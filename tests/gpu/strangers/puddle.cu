// Follows the waves in a puddle after a drop has fallen into it.
#include "gauge.h"

const int SIDE = 160, RIPPLES = 300;

class Check {
    bool wait;

public:
    explicit Check(bool wait) : wait(wait) {}

    void operator()(const char *what) const {
        cudaError_t seen = cudaGetLastError();
        if (seen == cudaSuccess && wait) seen = cudaDeviceSynchronize();
        if (seen != cudaSuccess) {
            std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(seen));
            std::exit(1);
        }
    }
};

__global__ void ripple(const float *now, const float *before, float *next) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= SIDE - 1 || y >= SIDE - 1) return;
    int i = y * SIDE + x;
    float bend = now[i - 1] + now[i + 1] + now[i - SIDE] + now[i + SIDE] - 4 * now[i];
    next[i] = 0.999f * (2 * now[i] - before[i] + 0.2f * bend);
}

__global__ void drop(float *now) { now[SIDE / 2 * SIDE + SIDE / 2] += 1.0f; }

int main(int argc, char **argv) {
    const Check check(!cured(argc, argv));
    float *height[3];
    for (float *&h : height) {
        cudaMalloc(&h, SIDE * SIDE * sizeof(float));
        cudaMemset(h, 0, SIDE * SIDE * sizeof(float));
    }
    check("making the puddle");
    const dim3 threads(32, 8), blocks(SIDE / 32, SIDE / 8);
    return steps([&] {
        drop<<<1, 1>>>(height[0]);
        check("drop");
        for (int k = 0; k < RIPPLES; k++) {
            ripple<<<blocks, threads>>>(height[k % 3], height[(k + 2) % 3], height[(k + 1) % 3]);
            check("ripple");
        }
    }, 5);
}
