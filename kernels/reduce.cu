// Shows: one kernel in the place of thousands of tiny copies or launches. It adds up an array: each
// thread sums what it strides over, warps join by shuffles, blocks by one atomic add each.
//
// `out` must hold 0 (or what is to be added to) before the launch. Any grid works; a few blocks of 256
// for each multiprocessor are enough. The order of the atomic adds is not fixed, so the last bits of
// a sum of fractions can differ from run to run.

extern "C" __global__ void reduce_sum(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ float warp_sums[32];
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;

    float sum = 0.0f;
    for (long long i = first; i < n; i += stride) {
        sum += x[i];
    }

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warps = (blockDim.x + 31) / 32;
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        sum = lane < warps ? warp_sums[lane] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) {
            sum += __shfl_down_sync(0xffffffffu, sum, offset);
        }
        if (lane == 0) {
            atomicAdd(out, sum);
        }
    }
}
