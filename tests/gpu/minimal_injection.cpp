/* The least that a collector injected by the CUDA driver can be: see Counter in cupti_min.h. `cuptop trace` is compared
 * with it.
 *
 *   g++ -O2 -shared -fPIC -o minimal_injection.so minimal_injection.cpp -ldl -lpthread
 *   CUDA_INJECTION64_PATH=$PWD/minimal_injection.so MINIMAL_OUT=counts.txt python3 train.py
 *
 * MINIMAL_CUPTI names the libcupti to use; without it, the one that the program has loaded, else the toolkit's. */
#include <csignal>

#include "cupti_min.h"

static void at_exit() {
    Counter& counter = Counter::get();
    counter.finish();
    const char* path = getenv("MINIMAL_OUT");
    if (!path) return;
    if (FILE* out = fopen(path, "a")) {
        fprintf(out, "{\"pid\": %d, \"records\": %llu, \"kernels\": %llu, \"copies\": %llu, \"memsets\": %llu, \"dropped\": %llu}\n",
                (int)getpid(), (unsigned long long)counter.total(), (unsigned long long)counter.count(CONCURRENT_KERNEL),
                (unsigned long long)(counter.count(MEMCPY) + counter.count(MEMCPY2)),
                (unsigned long long)counter.count(MEMSET), (unsigned long long)counter.lost());
        fclose(out);
    }
}

extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
    static std::once_flag once;
    std::call_once(once, [] {
        const char* error = Counter::get().start(
            getenv("MINIMAL_CUPTI"), {CONCURRENT_KERNEL, MEMCPY, MEMCPY2, MEMSET, RUNTIME, SYNCHRONIZATION});
        if (error) fprintf(stderr, "minimal_injection: %s\n", error);
        else atexit(at_exit);
    });
    return 1;
}
