// Lets a rod of 1,024 points cool down: fifteen hundred rounds a step, which are captured once.
#include "gauge.h"

__global__ void cool(const float *from, float *to, int rounds) {
    __shared__ float rod[1026];
    int i = threadIdx.x + 1;
    rod[i] = from[i];
    if (threadIdx.x == 0) rod[0] = from[0], rod[1025] = from[1025];
    __syncthreads();
    for (int k = 0; k < rounds; k++) {
        float next = 0.25f * rod[i - 1] + 0.5f * rod[i] + 0.25f * rod[i + 1];
        __syncthreads();
        rod[i] = next;
        __syncthreads();
    }
    to[i] = rod[i];
}

int main(int argc, char **argv) {
    const int rounds = 1500, at_once = cured(argc, argv) ? rounds / 2 : 1;
    float *a, *b;
    cudaMalloc(&a, 1026 * sizeof(float));
    cudaMalloc(&b, 1026 * sizeof(float));
    cudaMemset(a, 0, 1026 * sizeof(float));
    cudaMemset(b, 0, 1026 * sizeof(float));
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int k = 0; k < rounds; k += 2 * at_once) {
        cool<<<1, 1024, 0, stream>>>(a, b, at_once);
        cool<<<1, 1024, 0, stream>>>(b, a, at_once);
    }
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    return steps([&] {
        cudaGraphLaunch(exec, stream);
        cudaStreamSynchronize(stream);
    });
}
