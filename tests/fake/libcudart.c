// A runtime library whose sync spins as NVIDIA's does: in a function of its own that asks for the time.
#include <time.h>

static volatile int is_done;

static __attribute__((noinline)) long ask(struct timespec *time) {
    clock_gettime(CLOCK_MONOTONIC, time);
    return time->tv_nsec;
}

static __attribute__((noinline)) int spin(void) {
    struct timespec time;
    long sum = 0;
    while (!is_done)
        sum += ask(&time);
    return (int)sum;
}

int cudaStreamSynchronize(void *stream) {
    int result = spin();
    return stream ? 0 : result;
}
