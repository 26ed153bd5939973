"""Takes the mean out of each of many accounts, which are long: what is added up is added up in double precision."""
import cupy as cp

from gauge import steps

ACCOUNTS, ENTRIES, THREADS = 32768, 8192, 512

even = cp.RawKernel(r"""
extern "C" __global__ void __launch_bounds__(512) even(const float4 *in, float4 *out, int entries) {
    __shared__ double parts[16];
    __shared__ float mean;
    in += size_t(blockIdx.x) * (entries / 4);
    out += size_t(blockIdx.x) * (entries / 4);
    float4 held[4];
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        held[k] = in[k * 512 + threadIdx.x];
        sum += double(held[k].x + held[k].y) + double(held[k].z + held[k].w);
    }
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double whole = 0.0;
        for (int k = 0; k < 16; k++) whole += parts[k];
        mean = float(whole / entries);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float4 v = held[k];
        out[k * 512 + threadIdx.x] = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    }
}
""", "even")

accounts = cp.random.default_rng(0).random((ACCOUNTS, ENTRIES), dtype=cp.float32)
evened = cp.empty_like(accounts)
for _ in steps(cp.cuda.Device().synchronize, each=20):
    even((ACCOUNTS,), (THREADS,), (accounts, evened, cp.int32(ENTRIES)))
