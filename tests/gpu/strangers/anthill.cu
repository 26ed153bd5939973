// Six ant colonies, each with a thread of the program that lets its ants walk and waits for them.
#include <thread>

#include "gauge.h"

const int COLONIES = 6, ANTS = 4096, THREADS = 256, WALKS = 40, PACES = 3000;

__global__ void walk(float2 *ants, int paces) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 ant = ants[i];
    for (int pace = 0; pace < paces; pace++) {
        ant.x = ant.x * 0.9995f + __sinf(ant.y) * 0.01f;
        ant.y = ant.y * 0.9995f + __cosf(ant.x) * 0.01f;
    }
    ants[i] = ant;
}

struct Colony {
    float2 *ants, *seen;
    cudaStream_t stream = 0;

    void day() {
        for (int k = 0; k < WALKS; k++) walk<<<ANTS / THREADS, THREADS, 0, stream>>>(ants, PACES);
        cudaMemcpyAsync(seen, ants, 64 * sizeof(float2), cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
    }
};

int main(int argc, char **argv) {
    Colony colonies[COLONIES];
    for (Colony &colony : colonies) {
        if (cured(argc, argv)) cudaStreamCreateWithFlags(&colony.stream, cudaStreamNonBlocking);
        cudaMalloc(&colony.ants, ANTS * sizeof(float2));
        cudaMemset(colony.ants, 0, ANTS * sizeof(float2));
        cudaMallocHost(&colony.seen, 64 * sizeof(float2));
    }
    return steps([&] {
        std::vector<std::thread> keepers;
        for (Colony &colony : colonies) keepers.emplace_back(&Colony::day, &colony);
        for (std::thread &keeper : keepers) keeper.join();
    });
}
