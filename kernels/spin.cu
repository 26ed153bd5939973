// Shows: a bar of a length that you choose, which uses next to none of the GPU. Two of them on two
// streams lie above each other; two on one stream lie behind each other.
//
// Launch one block of one thread. The GPU's global timer ticks every 32 ns to 1 us depending on the
// chip, so a bar is up to one tick longer than asked for.

static __device__ __forceinline__ unsigned long long global_nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void spin(unsigned long long ns) {
    if (threadIdx.x != 0) {
        return;
    }
    const unsigned long long start = global_nanoseconds();
    while (global_nanoseconds() - start < ns) {
    }
}
