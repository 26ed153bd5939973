// What the C++ programs of truths.toml share, as gauge.py does for those in Python.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>
#include <unistd.h>

static bool cured(int argc, char **argv) { return argc > 1 && !std::strcmp(argv[1], "--cured"); }

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Makes steps for some seconds and prints their median at the end; waits for the device after every `each` of them.
template <class Step> static int steps(Step step, int each = 1, int warm = 5) {
    const char *said = std::getenv("GAUGE_SECONDS"), *gate = std::getenv("GAUGE_GATE");
    while (gate && access(gate, F_OK)) usleep(20000);
    for (int i = 0; i < warm; i++) step();
    cudaDeviceSynchronize();
    std::vector<double> took;
    double begun = now(), end = begun + (said ? std::atof(said) : 4.5);
    while (begun < end) {
        for (int i = 0; i < each; i++) step();
        if (each > 1) cudaDeviceSynchronize();
        double at = now();
        took.push_back((at - begun) / each);
        begun = at;
    }
    cudaDeviceSynchronize();
    cudaError_t failed = cudaGetLastError();
    if (failed != cudaSuccess) std::printf("%s\n", cudaGetErrorString(failed));
    std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
    std::printf("step_ms %.4f\n", took[took.size() / 2] * 1e3);
    return failed != cudaSuccess;
}
