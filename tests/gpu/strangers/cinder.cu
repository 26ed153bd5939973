// Brings rows of features to length one. Two blocks a multiprocessor go over all rows.
#include "gauge.h"

constexpr int rows = 1 << 18, columns = 1024, threads = 512;

__global__ void __launch_bounds__(threads, 2) normalise(const float4 *in, float4 *out) {
    const int lane = threadIdx.x % 32, warps = gridDim.x * threads / 32;
    for (int row = (blockIdx.x * threads + threadIdx.x) / 32; row < rows; row += warps) {
        float4 part[columns / 128];
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < columns / 128; k++) part[k] = in[size_t(row) * (columns / 4) + k * 32 + lane];
#pragma unroll
        for (int k = 0; k < columns / 128; k++)
            sum += part[k].x * part[k].x + part[k].y * part[k].y + part[k].z * part[k].z + part[k].w * part[k].w;
        for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
        float scale = rsqrtf(sum + 1e-12f);
#pragma unroll
        for (int k = 0; k < columns / 128; k++) {
            float4 v = part[k];
            out[size_t(row) * (columns / 4) + k * 32 + lane] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
        }
    }
}

int main() {
    int device, processors;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    float4 *in, *out;
    cudaMalloc(&in, size_t(rows) * columns * sizeof(float));
    cudaMalloc(&out, size_t(rows) * columns * sizeof(float));
    cudaMemset(in, 0x3f, size_t(rows) * columns * sizeof(float));
    return steps([&] { normalise<<<2 * processors, threads>>>(in, out); }, 20);
}
