// Sweeps over the picture of a garage's floor, as many rows at a time as there is room for.
#include "gauge.h"

const int WIDTH = 4096, HEIGHT = 4096, MOST = 16, THREADS = 256;

__global__ void fill(float *floor) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    floor[i] = float((i * 2654435761u) % 255);
}

__global__ void sweep(const float *floor, float *swept, int row) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = row + blockIdx.y;
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int v = min(max(y + dy, 0), HEIGHT - 1), u = min(max(x + dx, 0), WIDTH - 1);
            sum += floor[size_t(v) * WIDTH + u];
        }
    swept[size_t(y) * WIDTH + x] = sum / 9;
}

// How many rows of both pictures would fit into a quarter of what is free.
int rows_that_fit() {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return int(std::min<size_t>(MOST, free / 4 / (2 * WIDTH * sizeof(float))));
}

struct Garage {
    float *floor, *swept;
    int room;
    bool ask;

    explicit Garage(bool ask) : ask(ask) {
        cudaMalloc(&floor, size_t(WIDTH) * HEIGHT * sizeof(float));
        cudaMalloc(&swept, size_t(WIDTH) * HEIGHT * sizeof(float));
        fill<<<WIDTH * HEIGHT / THREADS, THREADS>>>(floor);
        room = rows_that_fit();
    }

    void clean() {
        for (int row = 0; row < HEIGHT; row += room) {
            if (ask) room = rows_that_fit();
            int rows = std::min(room, HEIGHT - row);
            sweep<<<dim3(WIDTH / THREADS, rows), THREADS>>>(floor, swept, row);
        }
        std::swap(floor, swept);
    }
};

int main(int argc, char **argv) {
    Garage garage(!cured(argc, argv));
    return steps([&] { garage.clean(); }, 5);
}
