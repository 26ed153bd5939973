// Follows the water of a lagoon; the main thread keeps count of the boats while it looks whether the last hour is reckoned.
#include "gauge.h"

const size_t CELLS = size_t(1) << 28;
const int THREADS = 256, PARTS = 8, BOATS = 20000;

__global__ void still(float *water) { water[blockIdx.x * size_t(blockDim.x) + threadIdx.x] = 1.0f; }

__global__ void flow(const float *water, float *later, float wind) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    later[i] = water[i] * 0.999f + wind;
}

struct Harbour {
    std::vector<float> boats = std::vector<float>(BOATS, 0.5f);
    long looks = 0;

    // Each boat drifts a little, and those that are far out come back.
    float drift() {
        float most = 0;
        for (size_t b = 0; b < boats.size(); b++) {
            boats[b] += 0.001f * float(b % 7);
            if (boats[b] > 9.0f) boats[b] = 0;
            most = std::max(most, boats[b]);
        }
        looks++;
        return most;
    }
};

int main() {
    float *water, *later;
    cudaMalloc(&water, CELLS * sizeof(float));
    cudaMalloc(&later, CELLS * sizeof(float));
    still<<<CELLS / THREADS, THREADS>>>(water);
    cudaEvent_t reckoned[2];
    for (auto &each : reckoned) {
        cudaEventCreateWithFlags(&each, cudaEventDisableTiming);
        cudaEventRecord(each);
    }
    Harbour harbour;
    float farthest = 0;
    int hour = 0;
    int failed = steps([&] {
        for (int part = 0; part < PARTS; part++) {
            flow<<<CELLS / THREADS, THREADS>>>(water, later, 0.0001f * part);
            std::swap(water, later);
        }
        cudaEventRecord(reckoned[hour % 2]);
        hour++;
        while (cudaEventQuery(reckoned[hour % 2]) == cudaErrorNotReady) farthest = std::max(farthest, harbour.drift());
    });
    std::printf("%ld looks, the farthest boat was at %.1f\n", harbour.looks, farthest);
    return failed;
}
