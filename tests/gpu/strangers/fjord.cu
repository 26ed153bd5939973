// Six cameras, a stream each: a patch is smoothed along its edges, and its brightness is counted.
#include "gauge.h"

constexpr int cameras = 6, side = 128, bins = 256, reach = 20;

__global__ void bilateral(const float *in, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float here = in[y * side + x], sum = 0.0f, weight = 0.0f;
    for (int dy = -reach; dy <= reach; dy++)
        for (int dx = -reach; dx <= reach; dx++) {
            float other = in[min(max(y + dy, 0), side - 1) * side + min(max(x + dx, 0), side - 1)];
            float w = __expf(-0.01f * (dx * dx + dy * dy) - 8.0f * (other - here) * (other - here));
            sum += w * other;
            weight += w;
        }
    out[y * side + x] = sum / weight;
}

__global__ void histogram(const float *in, unsigned *counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&counts[min(int(in[i] * bins), bins - 1)], 1u);
}

int main(int argc, char **argv) {
    const bool own = cured(argc, argv);
    cudaStream_t stream[cameras];
    float *frame[cameras], *smooth[cameras];
    unsigned *counts[cameras];
    std::vector<float> picture(side * side);
    for (size_t i = 0; i < picture.size(); i++) picture[i] = float(i * 7919 % 1000) / 1000;
    for (int c = 0; c < cameras; c++) {
        cudaStreamCreate(&stream[c]);
        cudaMalloc(&frame[c], picture.size() * sizeof(float));
        cudaMalloc(&smooth[c], picture.size() * sizeof(float));
        cudaMalloc(&counts[c], bins * sizeof(unsigned));
        cudaMemcpy(frame[c], picture.data(), picture.size() * sizeof(float), cudaMemcpyHostToDevice);
    }
    return steps([&] {
        for (int c = 0; c < cameras; c++) {
            bilateral<<<dim3(side / 16, side / 16), dim3(16, 16), 0, stream[c]>>>(frame[c], smooth[c]);
            if (own)
                cudaMemsetAsync(counts[c], 0, bins * sizeof(unsigned), stream[c]);
            else
                cudaMemset(counts[c], 0, bins * sizeof(unsigned));
            histogram<<<side * side / 256, 256, 0, stream[c]>>>(smooth[c], counts[c]);
        }
    }, 20);
}
