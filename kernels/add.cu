// Shows: the smallest kernel that does something. On a few values it is all launch cost; on many it
// reads and writes each value once, so its bar is as long as device memory makes it.
//
// Launch with at least n threads in x.

extern "C" __global__ void add_one(float* __restrict__ x, int n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += 1.0f;
    }
}
