// Weighs what ships bring, at four berths with a stream each: a load comes up, is changed, and goes down again.
#include "gauge.h"

constexpr int berths = 4, loads = 16, n = 8 << 20;
constexpr size_t bytes = n * sizeof(float);

__global__ void weigh(float *x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = v * 0.9999f + 0.5f;
    x[i] = v;
}

struct Berth {
    cudaStream_t stream;
    float *ship, *here, *shore;
    double seen = 0;
    bool busy = false;

    void send() {
        cudaMemcpyAsync(here, ship, bytes, cudaMemcpyHostToDevice, stream);
        weigh<<<n / 256, 256, 0, stream>>>(here, 1500);
        cudaMemcpyAsync(shore, here, bytes, cudaMemcpyDeviceToHost, stream);
        busy = true;
    }

    void fetch() {
        if (!busy) return;
        cudaStreamSynchronize(stream);
        seen += shore[0];
        busy = false;
    }
};

int main(int argc, char **argv) {
    const bool later = cured(argc, argv);
    Berth berth[berths];
    for (Berth &b : berth) {
        cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking);
        cudaMalloc(&b.here, bytes);
        cudaMallocHost(&b.ship, bytes);
        cudaMallocHost(&b.shore, bytes);
        for (int i = 0; i < n; i++) b.ship[i] = float(i % 100);
    }
    return steps([&] {
        for (int k = 0; k < loads; k++) {
            Berth &b = berth[k % berths];
            if (later) b.fetch();
            b.send();
            if (!later) b.fetch();
        }
    }, 2);
}
