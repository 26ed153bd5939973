// Shows: four ways to transpose an n x n matrix of f32, from the worst to a good one. All move the same
// 2 * 4 * n * n bytes, so the length of the bars is all that tells them apart.
//
//   transpose_row           one launch for each row: the GPU waits for the host most of the time
//   transpose_naive         one launch; reads are coalesced, writes touch 32 cache lines a warp
//   transpose_tiled         through a tile in shared memory: reads and writes are coalesced, but a
//                           warp reads a column of the tile, 32 values from one bank
//   transpose_tiled_padded  the same with rows of 33 values: every value lies in another bank
//
// transpose_row: at least n threads in x. The others: blocks of 32 x 8, grid of n/32 x n/32, rounded up.

#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose_row(const float* __restrict__ in, float* __restrict__ out, int n, int row) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < n && row < n) {
        out[(size_t)column * n + row] = in[(size_t)row * n + column];
    }
}

extern "C" __global__ void transpose_naive(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int top = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS) {
        const int row = top + j;
        if (column < n && row < n) {
            out[(size_t)column * n + row] = in[(size_t)row * n + column];
        }
    }
}

// WIDTH is the length of a row of the tile in shared memory: TILE, or one more.
template <int WIDTH>
static __device__ __forceinline__ void through_tile(const float* __restrict__ in, float* __restrict__ out, int n,
                                                    float (*tile)[WIDTH]) {
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int top = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS) {
        if (column < n && top + j < n) {
            tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(top + j) * n + column];
        }
    }
    __syncthreads();
    // The block's place with x and y exchanged, so that a warp again writes 32 neighbours.
    const int out_column = blockIdx.y * TILE + threadIdx.x;
    const int out_top = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS) {
        if (out_column < n && out_top + j < n) {
            out[(size_t)(out_top + j) * n + out_column] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}

extern "C" __global__ void transpose_tiled(const float* __restrict__ in, float* __restrict__ out, int n) {
    __shared__ float tile[TILE][TILE];
    through_tile<TILE>(in, out, n, tile);
}

extern "C" __global__ void transpose_tiled_padded(const float* __restrict__ in, float* __restrict__ out, int n) {
    __shared__ float tile[TILE][TILE + 1];
    through_tile<TILE + 1>(in, out, n, tile);
}
