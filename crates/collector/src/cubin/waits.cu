// waits.cubin is made of this, by NVRTC 13.0.88 in /src: -arch=sm_90 -lineinfo

__device__ float in[1 << 20], out[1 << 20];
__device__ int at[1 << 20];

__device__ __forceinline__ float twice(float x) {
    return x * x + 1.0f;
}

__global__ void odd() {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = twice(
        in[at[i]]);
}

template <class T> __global__ void sum(const T *in, T *out) {
    __shared__ T part[256];
    part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    for (int s = 128; s; s /= 2) {
        __syncthreads();
        if (threadIdx.x < s)
            part[threadIdx.x] += part[threadIdx.x + s];
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
}
template __global__ void sum<double>(const double *, double *);
