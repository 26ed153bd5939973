// Looks for corners in one picture after another, with the measure of Harris.
#include "gauge.h"

constexpr int wide = 1280, high = 960, pixels = wide * high;

__global__ void gradients(const float *in, float *xx, float *xy, float *yy) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % wide, y = i / wide;
    if (x == 0 || y == 0 || x == wide - 1 || y == high - 1) return;
    float gx = 0.5f * (in[i + 1] - in[i - 1]), gy = 0.5f * (in[i + wide] - in[i - wide]);
    xx[i] = gx * gx, xy[i] = gx * gy, yy[i] = gy * gy;
}

__device__ float box(const float *in, int i) {
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) sum += in[i + dy * wide + dx];
    return sum;
}

__global__ void harris(const float *xx, const float *xy, const float *yy, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % wide, y = i / wide;
    if (x < 3 || y < 3 || x >= wide - 3 || y >= high - 3) return;
    float a = box(xx, i), b = box(xy, i), c = box(yy, i);
    out[i] = a * c - b * b - 0.05f * (a + c) * (a + c);
}

struct Scratch {
    float *xx, *xy, *yy, *score;
    Scratch() {
        for (float **part : {&xx, &xy, &yy, &score}) cudaMalloc(part, pixels * sizeof(float));
    }
    ~Scratch() {
        for (float *part : {xx, xy, yy, score}) cudaFree(part);
    }
};

static void corners(const float *picture, const Scratch &s) {
    gradients<<<pixels / 256, 256>>>(picture, s.xx, s.xy, s.yy);
    harris<<<pixels / 256, 256>>>(s.xx, s.xy, s.yy, s.score);
}

int main(int argc, char **argv) {
    const bool keep = cured(argc, argv);
    float *picture;
    cudaMalloc(&picture, pixels * sizeof(float));
    cudaMemset(picture, 0, pixels * sizeof(float));
    Scratch kept;
    return steps([&] {
        if (keep) {
            corners(picture, kept);
        } else {
            Scratch scratch;
            corners(picture, scratch);
        }
    }, 50);
}
