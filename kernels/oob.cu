// Shows: what a bad kernel does. It writes 4 TiB behind its buffer, an address that nothing is mapped
// at: the launch succeeds, the next synchronization fails with "an illegal memory access", and every
// call after that too. cuptop's runner ends with that error; the screen stays.

extern "C" __global__ void out_of_bounds(float* x) {
    volatile float* far_away = x + (1ull << 40);
    *far_away = 1.0f;
}
