// Follows the gas in a pipe behind a piston, three hundred short times in one go.
#include "gauge.h"

const int CELLS = 1 << 14, THREADS = 256, TIMES = 300;

__global__ void press(float *pressure, const float *flow, float time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    pressure[i] -= time * (flow[i + 1] - flow[i]);
}

__global__ void move(float *flow, const float *pressure, float time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i) flow[i] = flow[i] * 0.9999f - time * (pressure[i] - pressure[i - 1]);
}

__global__ void fill(float *pressure) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    pressure[i] = 1.0f + (i < 100 ? 0.5f : 0.0f);
}

struct Pipe {
    float *pressure, *flow;
    cudaStream_t stream;
    cudaGraphExec_t plan = nullptr;

    void prepare() {
        cudaGraph_t graph;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int k = 0; k < TIMES; k++) {
            press<<<CELLS / THREADS, THREADS, 0, stream>>>(pressure, flow, 0.1f);
            move<<<CELLS / THREADS, THREADS, 0, stream>>>(flow, pressure, 0.1f);
        }
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiate(&plan, graph, 0);
        cudaGraphDestroy(graph);
    }

    void stroke(bool keep) {
        if (!plan) prepare();
        cudaGraphLaunch(plan, stream);
        cudaStreamSynchronize(stream);
        if (keep) return;
        cudaGraphExecDestroy(plan);
        plan = nullptr;
    }
};

int main(int argc, char **argv) {
    Pipe pipe;
    cudaStreamCreate(&pipe.stream);
    cudaMalloc(&pipe.pressure, CELLS * sizeof(float));
    cudaMalloc(&pipe.flow, (CELLS + 1) * sizeof(float));
    cudaMemset(pipe.flow, 0, (CELLS + 1) * sizeof(float));
    fill<<<CELLS / THREADS, THREADS>>>(pipe.pressure);
    cudaDeviceSynchronize();
    const bool keep = cured(argc, argv);
    return steps([&] { pipe.stroke(keep); });
}
