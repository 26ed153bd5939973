// Lights five hundred small fires a step; each has a place, a size and a colour.
#include "gauge.h"

struct Fire {
    float x, y, size, red, green, blue;
};

__constant__ Fire fire;

__device__ void light(float *sky, int side, const Fire &f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float dx = i % side - f.x, dy = i / side - f.y, glow = f.size / (1.0f + dx * dx + dy * dy);
    sky[i] = sky[i] * 0.99f + glow * (f.red + f.green + f.blue);
}

__global__ void kindle(float *sky, int side) { light(sky, side, fire); }
__global__ void kindle_by_value(float *sky, int side, Fire f) { light(sky, side, f); }

int main(int argc, char **argv) {
    const bool by_value = cured(argc, argv);
    const int side = 256;
    float *sky;
    cudaMalloc(&sky, side * side * sizeof(float));
    cudaMemset(sky, 0, side * side * sizeof(float));
    return steps([&] {
        for (int k = 0; k < 500; k++) {
            Fire next = {float(k % side), float(k * 7 % side), 1.0f, 0.5f, 0.3f, 0.1f};
            if (by_value) {
                kindle_by_value<<<side * side / 256, 256>>>(sky, side, next);
                continue;
            }
            cudaMemcpyToSymbol(fire, &next, sizeof(next));
            kindle<<<side * side / 256, 256>>>(sky, side);
            cudaStreamSynchronize(0);
        }
        cudaStreamSynchronize(0);
    });
}
