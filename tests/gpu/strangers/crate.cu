// Takes frames from a camera's buffer, and keeps a running background of them on the GPU.
#include "gauge.h"

const int WIDTH = 4096, HEIGHT = 3072;
const size_t PIXELS = size_t(WIDTH) * HEIGHT, BYTES = PIXELS * sizeof(unsigned short);

__global__ void blend(const unsigned short *frame, float *background, float share) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < PIXELS) background[i] += share * (float(frame[i]) - background[i]);
}

static unsigned short *own = nullptr;

static unsigned short *staging(bool keep) {
    if (keep && own) return own;
    cudaMallocHost(&own, BYTES);
    return own;
}

static void done_with(unsigned short *buffer, bool keep) {
    if (!keep) cudaFreeHost(buffer);
}

int main(int argc, char **argv) {
    const bool keep = cured(argc, argv);
    std::vector<std::vector<unsigned short>> camera(4, std::vector<unsigned short>(PIXELS));
    for (size_t k = 0; k < camera.size(); k++)
        for (size_t i = 0; i < PIXELS; i++) camera[k][i] = (unsigned short)((i * 31 + k * 977) & 4095);

    unsigned short *frame;
    float *background;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&frame, BYTES);
    cudaMalloc(&background, PIXELS * sizeof(float));
    cudaMemset(background, 0, PIXELS * sizeof(float));

    size_t number = 0;
    return steps([&] {
        unsigned short *buffer = staging(keep);
        std::memcpy(buffer, camera[number++ % camera.size()].data(), BYTES);
        cudaMemcpyAsync(frame, buffer, BYTES, cudaMemcpyHostToDevice, stream);
        blend<<<(PIXELS + 255) / 256, 256, 0, stream>>>(frame, background, 0.05f);
        cudaStreamSynchronize(stream);
        done_with(buffer, keep);
    });
}
