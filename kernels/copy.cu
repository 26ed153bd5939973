// Shows: device memory at its full speed: 16 bytes a thread, read once and written once. Bytes moved
// are 2 * 4 * n; what this reaches is the ceiling for every kernel that is bound by memory.
//
// Any grid works (threads stride over the array); n / 1024 blocks of 256 give each thread one float4.
// Both pointers must be aligned to 16 bytes.

extern "C" __global__ void copy_f4(const float* __restrict__ in, float* __restrict__ out, int n) {
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long quads = n / 4;
    const float4* __restrict__ in4 = reinterpret_cast<const float4*>(in);
    float4* __restrict__ out4 = reinterpret_cast<float4*>(out);
    for (long long i = first; i < quads; i += stride) {
        out4[i] = in4[i];
    }
    for (long long i = quads * 4 + first; i < n; i += stride) {
        out[i] = in[i];
    }
}
