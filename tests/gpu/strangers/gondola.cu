// Paints twelve views of the lagoon on three streams, and brings each of them down to be looked at.
#include "gauge.h"

const int GONDOLAS = 3, VIEWS = 12, THREADS = 256, DOTS = 8 << 20;
const size_t BYTES = DOTS * sizeof(float);

__global__ void paint(float *view, float hour, int waves) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float water = 0, at = i * 1e-5f + hour;
    for (int w = 1; w <= waves; w++) water += __sinf(at * w) / w;
    view[i] = water;
}

struct Gondola {
    cudaStream_t stream;
    float *view, *album;
    bool away = false;

    void leave(float hour) {
        paint<<<DOTS / THREADS, THREADS, 0, stream>>>(view, hour, 60);
        cudaMemcpyAsync(album, view, BYTES, cudaMemcpyDeviceToHost, stream);
        away = true;
    }

    float arrive() {
        if (!away) return 0;
        cudaStreamSynchronize(stream);
        away = false;
        return album[DOTS / 2];
    }
};

static float *blank(bool firm) {
    void *paper = nullptr;
    if (firm) cudaMallocHost(&paper, BYTES);
    else paper = std::malloc(BYTES);
    std::memset(paper, 0, BYTES);
    return static_cast<float *>(paper);
}

int main(int argc, char **argv) {
    Gondola gondolas[GONDOLAS];
    for (Gondola &gondola : gondolas) {
        cudaStreamCreateWithFlags(&gondola.stream, cudaStreamNonBlocking);
        cudaMalloc(&gondola.view, BYTES);
        gondola.album = blank(cured(argc, argv));
    }
    double seen = 0;
    int status = steps([&] {
        for (int k = 0; k < VIEWS; k++) {
            Gondola &gondola = gondolas[k % GONDOLAS];
            seen += gondola.arrive();
            gondola.leave(k * 0.5f);
        }
    }, 2);
    std::printf("%.3f\n", seen);
    return status;
}
