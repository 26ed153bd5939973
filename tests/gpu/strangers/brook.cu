// Two thousand drops a step, each a kernel of one warp.
#include "gauge.h"

__global__ void drop(float *x) { x[threadIdx.x] += 1.0f; }

int main(int argc, char **argv) {
    const bool once = cured(argc, argv);
    float *x;
    cudaMalloc(&x, 32 * sizeof(float));
    cudaMemset(x, 0, 32 * sizeof(float));
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    auto drops = [&] {
        for (int i = 0; i < 2000; i++) drop<<<1, 32, 0, stream>>>(x);
    };
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    if (once) {
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        drops();
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiate(&exec, graph, 0);
    }
    return steps([&] {
        if (once)
            cudaGraphLaunch(exec, stream);
        else
            drops();
        cudaStreamSynchronize(stream);
    });
}
