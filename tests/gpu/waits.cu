// Kernels that wait for one thing each, and what cures it: for tests/gpu/stalls.py. `waits N` runs all by turns, N times; `waits S NAME`
// that one for S seconds. -DTRANSPOSE="\"…/kernels/transpose.cu\""
#include TRANSPOSE
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Few warps: two a multiprocessor, each load after the one before; and as many as fit.
__global__ void chase(const int *next, int *out, int steps) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; i++)
        at = next[at]; // WAITS chase
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
__global__ void __launch_bounds__(1024) chase_many(const int *next, int *out, int steps) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; i++) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

// All threads of a warp read one bank; and 32.
template <int STRIDE> __device__ __forceinline__ void banks(float *out, int steps) {
    __shared__ float part[32 * 33];
    for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x) part[i] = i;
    __syncthreads();
    float sum = 0;
    int lane = threadIdx.x % 32;
    for (int i = 0; i < steps; i++) sum += part[(lane * STRIDE + i % 32) % (32 * 33)]; // WAITS one_bank
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void one_bank(float *out, int steps) { banks<32>(out, steps); }
__global__ void all_banks(float *out, int steps) { banks<33>(out, steps); }

// One warp works while the others wait at the barrier; and all of them do.
__global__ void barriers(float *out, int steps) {
    __shared__ float part;
    for (int i = 0; i < steps; i++) {
        if (threadIdx.x < 32) {
            float x = threadIdx.x;
            for (int k = 0; k < 4096; k++) x = __fmaf_rn(x, 1.0001f, 0.5f);
            if (threadIdx.x == 0) part = x;
        }
        __syncthreads();
        out[blockIdx.x * blockDim.x + threadIdx.x] = part + i;
    }
}
__global__ void no_barriers(float *out, int steps) {
    float x = threadIdx.x;
    for (int k = 0; k < 8 * steps; k++) x = __fmaf_rn(x, 1.0001f, 0.5f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// Code that no cache holds, run through once by warps at different places; and a loop.
template <int N> struct Long {
    static __device__ __forceinline__ float of(float x, float y) { return Long<N / 2>::of(Long<N - N / 2>::of(x, y + N), y); }
};
template <> struct Long<1> {
    static __device__ __forceinline__ float of(float x, float y) { return __fmaf_rn(x, y, x); }
};
__global__ void long_code(float *out, int steps) {
    float x = threadIdx.x, y = blockIdx.x;
    for (int i = 0; i < steps; i++) x = Long<10000>::of(x, y + i);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
__global__ void short_code(float *out, int steps) {
    float x = threadIdx.x, y = blockIdx.x;
#pragma unroll 1
    for (int i = 0; i < steps * 10000; i++) x = __fmaf_rn(x, y, x);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 300, n = 4096, sms = 132;
    auto is = [&](const char *name) { return argc < 3 || !strcmp(argv[2], name); };
    size_t size = (size_t)n * n;
    float *in, *out;
    int *next;
    cudaMalloc(&in, 4 * size); cudaMalloc(&out, 4 * size); cudaMalloc(&next, 4 * size);
    cudaMemset(in, 0, 4 * size);
    int *made = new int[size];
    for (size_t i = 0; i < size; i++) made[i] = (i * 1664525 + 1013904223) % size;
    cudaMemcpy(next, made, 4 * size, cudaMemcpyHostToDevice);
    dim3 grid(n / 32, n / 32), block(32, 8);
    using Clock = std::chrono::steady_clock;
    auto until = Clock::now() + std::chrono::seconds(rounds);
    for (int i = 0; argc < 3 ? i < rounds : Clock::now() < until; i++) {
        cudaDeviceSynchronize(); // what is queued before sampling is on is not sampled
        if (is("transpose_row")) transpose_row<<<n / 256, 256>>>(in, out, n, i);
        if (is("transpose_naive")) transpose_naive<<<grid, block>>>(in, out, n);
        if (is("transpose_tiled")) transpose_tiled<<<grid, block>>>(in, out, n);
        if (is("transpose_tiled_padded")) transpose_tiled_padded<<<grid, block>>>(in, out, n);
        if (is("chase")) chase<<<sms, 64>>>(next, (int *)out, 1000);
        if (is("chase_many")) chase_many<<<2 * sms, 1024>>>(next, (int *)out, 31);
        if (is("one_bank")) one_bank<<<2 * sms, 1024>>>(out, 2000);
        if (is("all_banks")) all_banks<<<2 * sms, 1024>>>(out, 2000);
        if (is("barriers")) barriers<<<2 * sms, 1024>>>(out, 50);
        if (is("no_barriers")) no_barriers<<<2 * sms, 1024>>>(out, 500);
        if (is("long_code")) long_code<<<2 * sms, 256>>>(out, 4);
        if (is("short_code")) short_code<<<2 * sms, 256>>>(out, 4);
    }
    printf("WAITS %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
