// Swings sixty million pendulums on; how long the next times are is chosen anew before each go.
#include <cmath>

#include "gauge.h"

const int PENDULUMS = 1 << 26, THREADS = 256, TIMES = 8;

__global__ void swing(float *angle, float *speed, float time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float fast = speed[i] - time * __sinf(angle[i]);
    speed[i] = fast;
    angle[i] += time * fast;
}

__global__ void fill(float *angle) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    angle[i] = float(i % 1009) * 0.001f;
}

int main() {
    float *angle, *speed;
    cudaMalloc(&angle, PENDULUMS * sizeof(float));
    cudaMalloc(&speed, PENDULUMS * sizeof(float));
    cudaMemset(speed, 0, PENDULUMS * sizeof(float));
    fill<<<PENDULUMS / THREADS, THREADS>>>(angle);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaDeviceSynchronize();
    cudaGraphExec_t plan = nullptr;
    int go = 0;
    return steps([&] {
        float time = 0.01f + 0.005f * std::sin(go++ * 0.1f);
        cudaGraph_t graph;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int k = 0; k < TIMES; k++) swing<<<PENDULUMS / THREADS, THREADS, 0, stream>>>(angle, speed, time);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphExecUpdateResultInfo changed;
        if (!plan) cudaGraphInstantiate(&plan, graph, 0);
        else cudaGraphExecUpdate(plan, graph, &changed);
        cudaGraphDestroy(graph);
        cudaGraphLaunch(plan, stream);
    }, 10);
}
