// Shows: the same product of two n x n matrices of f32 (row-major) at two speeds: 2 n^3 operations each.
//
//   matmul_naive  a thread for each value of the result, all operands from cache: bound by loads
//   matmul_tiled  128 x 128 values a block, 8 x 8 a thread in registers, operands through shared memory
//                 with the next tile fetched during the current one: bound by arithmetic
//
// c = a b. `a` and `b` may be the same matrix; `c` must be another.
//
// matmul_naive: blocks of 16 x 16, grid of n/16 x n/16, rounded up.
// matmul_tiled: blocks of 256 threads (256 or 16 x 16), grid of n/128 x n/128, rounded up. It is fastest
// where n is a multiple of 128 and the pointers are aligned to 16 bytes; other n take a path that
// checks every access.

extern "C" __global__ void matmul_naive(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        sum += a[(size_t)row * n + k] * b[(size_t)k * n + column];
    }
    c[(size_t)row * n + column] = sum;
}

// A block makes TILE x TILE values of c, DEPTH of the n products of each at a time.
#define TILE 128
#define DEPTH 16
// Rows of the left tile, which is kept transposed, are longer by 4 so that the transposing stores spread
// over the banks; 4 keeps them aligned for float4.
#define LEFT_ROW (TILE + 4)

// Four values of a row, zeros outside the matrix. WHOLE: nothing of any tile lies outside.
template <bool WHOLE>
static __device__ __forceinline__ float4 load4(const float* __restrict__ m, int row, int column, int n) {
    if (WHOLE) {
        return *reinterpret_cast<const float4*>(m + (size_t)row * n + column);
    }
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < n) {
        const float* at = m + (size_t)row * n;
        if (column < n) v.x = at[column];
        if (column + 1 < n) v.y = at[column + 1];
        if (column + 2 < n) v.z = at[column + 2];
        if (column + 3 < n) v.w = at[column + 3];
    }
    return v;
}

template <bool WHOLE>
static __device__ __forceinline__ void store4(float* __restrict__ m, int row, int column, int n, float4 v) {
    if (WHOLE) {
        *reinterpret_cast<float4*>(m + (size_t)row * n + column) = v;
    } else if (row < n) {
        float* at = m + (size_t)row * n;
        if (column < n) at[column] = v.x;
        if (column + 1 < n) at[column + 1] = v.y;
        if (column + 2 < n) at[column + 2] = v.z;
        if (column + 3 < n) at[column + 3] = v.w;
    }
}

// What one thread carries from device memory to shared memory for one step of DEPTH.
struct Fetched {
    float4 left[2];
    float4 right[2];
};

template <bool WHOLE>
static __device__ __forceinline__ Fetched fetch(const float* __restrict__ a, const float* __restrict__ b, int n,
                                                int top, int left_edge, int k, int thread) {
    Fetched f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        // 4 threads for a row of 16 values of a, 32 threads for a row of 128 values of b.
        f.left[half] = load4<WHOLE>(a, top + thread / 4 + half * 64, k + thread % 4 * 4, n);
        f.right[half] = load4<WHOLE>(b, k + thread / 32 + half * 8, left_edge + thread % 32 * 4, n);
    }
    return f;
}

static __device__ __forceinline__ void put(const Fetched& f, float (*left)[LEFT_ROW], float (*right)[TILE], int thread) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = thread / 4 + half * 64;
        const int k = thread % 4 * 4;
        left[k][row] = f.left[half].x;
        left[k + 1][row] = f.left[half].y;
        left[k + 2][row] = f.left[half].z;
        left[k + 3][row] = f.left[half].w;
        *reinterpret_cast<float4*>(&right[thread / 32 + half * 8][thread % 32 * 4]) = f.right[half];
    }
}

template <bool WHOLE>
static __device__ __forceinline__ void multiply(const float* __restrict__ a, const float* __restrict__ b,
                                                float* __restrict__ c, int n, float (*left)[DEPTH][LEFT_ROW],
                                                float (*right)[DEPTH][TILE]) {
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int top = blockIdx.y * TILE;
    const int left_edge = blockIdx.x * TILE;

    // 8 warps as 2 x 4, each 64 x 32 values; in a warp 8 x 4 threads; a thread has 2 x 2 squares of 4 x 4,
    // so that a warp's reads of shared memory are whole, conflict-free lines.
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int row = warp / 4 * 64 + lane / 4 * 4;
    const int column = warp % 4 * 32 + lane % 4 * 4;

    float sum[8][8] = {};
    put(fetch<WHOLE>(a, b, n, top, left_edge, 0, thread), left[0], right[0], thread);
    __syncthreads();

    int current = 0;
    for (int k = 0; k < n; k += DEPTH) {
        const bool more = k + DEPTH < n;
        Fetched next;
        if (more) {
            next = fetch<WHOLE>(a, b, n, top, left_edge, k + DEPTH, thread);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            float x[8];
            float y[8];
            *reinterpret_cast<float4*>(&x[0]) = *reinterpret_cast<const float4*>(&left[current][d][row]);
            *reinterpret_cast<float4*>(&x[4]) = *reinterpret_cast<const float4*>(&left[current][d][row + 32]);
            *reinterpret_cast<float4*>(&y[0]) = *reinterpret_cast<const float4*>(&right[current][d][column]);
            *reinterpret_cast<float4*>(&y[4]) = *reinterpret_cast<const float4*>(&right[current][d][column + 16]);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    sum[i][j] += x[i] * y[j];
                }
            }
        }
        if (more) {
            // The other pair of tiles was last read before the previous barrier, so one barrier is enough.
            put(next, left[current ^ 1], right[current ^ 1], thread);
            __syncthreads();
            current ^= 1;
        }
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int out_row = top + row + i % 4 + i / 4 * 32;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float* s = &sum[i][half * 4];
            store4<WHOLE>(c, out_row, left_edge + column + half * 16, n, make_float4(s[0], s[1], s[2], s[3]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
    matmul_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    __shared__ __align__(16) float left[2][DEPTH][LEFT_ROW];
    __shared__ __align__(16) float right[2][DEPTH][TILE];
    if (n % TILE == 0) {
        multiply<true>(a, b, c, n, left, right);
    } else {
        multiply<false>(a, b, c, n, left, right);
    }
}
