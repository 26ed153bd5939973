// Shows: where a kernel stops being bound by memory and starts being bound by arithmetic. Each value
// is read once, put through `iterations` multiply-adds, and written once: 2 * iterations operations
// for 8 bytes. With few iterations the bar's length follows the bytes, with many it follows the
// operations, and the corner between the two is this GPU's roofline.
//
// Any grid works (threads stride over the array); n / 1024 blocks of 256 give each thread one float4,
// whose four chains of multiply-adds are independent. The pointer must be aligned to 16 bytes.

// x -> 0.9990234375 x + 0.0009765625 (both exact in binary) draws every value towards 1.
static __device__ __forceinline__ float step(float v) { return __fmaf_rn(v, 0.9990234375f, 0.0009765625f); }

extern "C" __global__ void __launch_bounds__(1024) fma_loop(float* __restrict__ x, int n, int iterations) {
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long quads = n / 4;
    float4* __restrict__ x4 = reinterpret_cast<float4*>(x);
    for (long long i = first; i < quads; i += stride) {
        float4 v = x4[i];
#pragma unroll 16
        for (int k = 0; k < iterations; ++k) {
            v.x = step(v.x);
            v.y = step(v.y);
            v.z = step(v.z);
            v.w = step(v.w);
        }
        x4[i] = v;
    }
    for (long long i = quads * 4 + first; i < n; i += stride) {
        float v = x[i];
        for (int k = 0; k < iterations; ++k) {
            v = step(v);
        }
        x[i] = v;
    }
}
