// Sand that falls: the grains are moved on the GPU, and the host looks at one in a thousand for the picture.
#include "gauge.h"

constexpr int grains = 1 << 23, stride = 1024, shown = grains / stride;

__global__ void fall(float4 *grain, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 g = grain[i];
    g.w -= 9.81f * dt;
    g.z += g.w * dt;
    if (g.z < 0.0f) g.z = -g.z, g.w = -0.6f * g.w;
    grain[i] = g;
}

__global__ void pick(const float4 *grain, float *heights) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < shown) heights[i] = grain[size_t(i) * stride].z;
}

int main(int argc, char **argv) {
    const bool device = cured(argc, argv);
    float4 *grain;
    float *picked, *heights;
    std::vector<float4> begin(grains);
    for (int i = 0; i < grains; i++) begin[i] = {i % 640 * 0.01f, i % 480 * 0.01f, 1.0f + i % 97 * 0.1f, 0.0f};
    if (device)
        cudaMalloc(&grain, grains * sizeof(float4));
    else
        cudaMallocManaged(&grain, grains * sizeof(float4));
    cudaMemcpy(grain, begin.data(), grains * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMalloc(&picked, shown * sizeof(float));
    cudaMallocHost(&heights, shown * sizeof(float));
    double drawn = 0.0;
    int failed = steps([&] {
        for (int k = 0; k < 4; k++) fall<<<grains / 256, 256>>>(grain, 0.001f);
        if (device) {
            pick<<<shown / 256, 256>>>(grain, picked);
            cudaMemcpy(heights, picked, shown * sizeof(float), cudaMemcpyDeviceToHost);
        } else {
            cudaDeviceSynchronize();
            for (int i = 0; i < shown; i++) heights[i] = grain[size_t(i) * stride].z;
        }
        for (int i = 0; i < shown; i++) drawn += heights[i];
    });
    std::printf("drawn %.1f\n", drawn);
    return failed;
}
