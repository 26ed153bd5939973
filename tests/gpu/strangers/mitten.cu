// Eight hands knit mittens: in each, the swings of four thousand threads are followed for a while, round by round.
#include "gauge.h"

const int HANDS = 8, ROUNDS = 12, BLOCKS = 16, THREADS = 256, MOMENTS = 4000;

__global__ void begin(float2 *swing) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    swing[i] = make_float2(0.001f * (i % 997), 0.0f);
}

__global__ void knit(const float2 *from, float2 *to, float pull) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 now = from[i];
    for (int t = 0; t < MOMENTS; t++) {
        now.y -= 0.001f * (pull * __sinf(now.x) + 0.05f * now.y);
        now.x += 0.001f * now.y;
    }
    to[i] = now;
}

// Sends rounds to the hands' streams.
struct Workshop {
    cudaStream_t stream[HANDS];
    float2 *wool[HANDS][2];
    cudaEvent_t latest;
    bool in_order;

    explicit Workshop(bool in_order) : in_order(in_order) {
        cudaEventCreateWithFlags(&latest, cudaEventDisableTiming);
        for (int h = 0; h < HANDS; h++) {
            cudaStreamCreateWithFlags(&stream[h], cudaStreamNonBlocking);
            for (auto &part : wool[h]) cudaMalloc(&part, BLOCKS * THREADS * sizeof(float2));
            begin<<<BLOCKS, THREADS, 0, stream[h]>>>(wool[h][0]);
        }
    }

    void submit(int hand, int round) {
        if (in_order) cudaStreamWaitEvent(stream[hand], latest, 0);
        knit<<<BLOCKS, THREADS, 0, stream[hand]>>>(wool[hand][round % 2], wool[hand][1 - round % 2], 9.81f - 0.1f * hand);
        if (in_order) cudaEventRecord(latest, stream[hand]);
    }

    void finish() {
        for (auto each : stream) cudaStreamSynchronize(each);
    }
};

int main(int argc, char **argv) {
    Workshop workshop(!cured(argc, argv));
    return steps([&] {
        for (int round = 0; round < ROUNDS; round++)
            for (int hand = 0; hand < HANDS; hand++) workshop.submit(hand, round);
        workshop.finish();
    });
}
