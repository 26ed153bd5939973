// Lets the sand of eight terraces settle, and lifts each back to the height that it had on the whole.
#include "gauge.h"

#include <cub/cub.cuh>

const int TERRACES = 8, ROUNDS = 10, COUNT = 16 * 256;

__global__ void settle(float *height, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float h = height[i];
    for (int k = 0; k < times; k++) h -= 0.01f * __sinf(h + 0.001f * i);
    height[i] = h;
}

__global__ void lift(float *height, const float *sum) { height[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f - *sum / COUNT; }

class Terrace {
    float *height, *sum;
    void *scratch = nullptr;
    size_t room = 0;
    cudaStream_t stream;
    bool aside;

    void add_up() {
        if (aside)
            cub::DeviceReduce::Sum(scratch, room, height, sum, COUNT, stream);
        else
            cub::DeviceReduce::Sum(scratch, room, height, sum, COUNT);
    }

public:
    explicit Terrace(bool aside) : aside(aside) {
        cudaStreamCreate(&stream);
        cudaMalloc(&height, COUNT * sizeof(float));
        cudaMalloc(&sum, sizeof(float));
        cudaMemset(height, 0, COUNT * sizeof(float));
        add_up();
        cudaMalloc(&scratch, room);
    }

    void go_on() {
        settle<<<COUNT / 256, 256, 0, stream>>>(height, 4000);
        add_up();
        lift<<<COUNT / 256, 256, 0, stream>>>(height, sum);
    }
};

int main(int argc, char **argv) {
    std::vector<Terrace> terraces;
    for (int t = 0; t < TERRACES; t++) terraces.emplace_back(cured(argc, argv));
    cudaDeviceSynchronize();
    return steps([&] {
        for (int round = 0; round < ROUNDS; round++)
            for (Terrace &terrace : terraces) terrace.go_on();
        cudaDeviceSynchronize();
    });
}
