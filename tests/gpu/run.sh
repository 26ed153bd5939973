#!/usr/bin/env bash
# What cuptop must show on a real GPU: scenarios with their expectations, one record for every operation, kernels
# against the CPU, speed beside a plain C++ loop, and what happens when something goes wrong.
#
# usage: run.sh CUPTOP [OUT]     (a release build of cuptop; logs and JSON go to OUT, default gpu-results)
#
# Needs a GPU, libcupti, NVRTC, g++ and python3 with numpy and CuPy. Nothing stops at the first failure; the last
# lines are a table and the number of checks that failed, which is also the exit status. Takes about three minutes.
here=$(cd "$(dirname "$0")" && pwd)
cuptop=$(readlink -f "${1:?usage: run.sh CUPTOP [OUT]}")
out=${2:-gpu-results}
mkdir -p "$out"
cxx=${CXX:-g++}
"$cxx" -std=c++17 -O2 -o "$out/probe" "$here/probe.cpp" -ldl -lpthread ||
    nvcc -std=c++17 -O2 -x c++ -o "$out/probe" "$here/probe.cpp" -ldl -lpthread
"$cxx" -std=c++17 -O2 -shared -fPIC -o "$out/minimal_injection.so" "$here/minimal_injection.cpp" -ldl -lpthread
exec python3 "$here/run.py" "$cuptop" "$out"
