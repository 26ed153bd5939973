/* What the hardware and CUDA give to a plain C++ loop, for comparison with the same work as a cuptop scenario.
 *
 *   g++ -O2 -o probe probe.cpp -ldl -lpthread
 *   ./probe launches COUNT REPEATS [LIBCUPTI]   launches of an empty kernel; with a libcupti, under the kinds that
 *                                               cuptop's runner records (launches.toml)
 *   ./probe copies BYTES COUNT REPEATS          pinned copies: up, down, both at once (copies.toml)
 *
 * Prints one JSON object. */
#include <algorithm>
#include <csignal>

#include "cupti_min.h"

typedef int Result;
typedef struct Context_* Context;
typedef struct Stream_* Stream;
typedef struct Event_* Event;
typedef struct Module_* Module;
typedef struct Function_* Function;
typedef unsigned long long Address;

static struct {
    Result (*init)(unsigned);
    Result (*device_get)(int*, int);
    Result (*retain)(Context*, int);
    Result (*set_current)(Context);
    Result (*synchronize)();
    Result (*stream_create)(Stream*, unsigned);
    Result (*stream_synchronize)(Stream);
    Result (*event_create)(Event*, unsigned);
    Result (*event_record)(Event, Stream);
    Result (*event_synchronize)(Event);
    Result (*wait_event)(Stream, Event, unsigned);
    Result (*elapsed)(float*, Event, Event);
    Result (*alloc)(Address*, size_t);
    Result (*host_alloc)(void**, size_t, unsigned);
    Result (*htod)(Address, const void*, size_t, Stream);
    Result (*dtoh)(void*, Address, size_t, Stream);
    Result (*module_load)(Module*, const void*);
    Result (*get_function)(Function*, Module, const char*);
    Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**);
} cu;

static void check(Result result, const char* what) {
    if (result) {
        fprintf(stderr, "%s failed: %d\n", what, result);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void load() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
        if (!function) {
            fprintf(stderr, "no %s\n", name);
            exit(3);
        }
    };
    find(cu.init, "cuInit");
    find(cu.device_get, "cuDeviceGet");
    find(cu.retain, "cuDevicePrimaryCtxRetain");
    find(cu.set_current, "cuCtxSetCurrent");
    find(cu.synchronize, "cuCtxSynchronize");
    find(cu.stream_create, "cuStreamCreate");
    find(cu.stream_synchronize, "cuStreamSynchronize");
    find(cu.event_create, "cuEventCreate");
    find(cu.event_record, "cuEventRecord");
    find(cu.event_synchronize, "cuEventSynchronize");
    find(cu.wait_event, "cuStreamWaitEvent");
    find(cu.elapsed, "cuEventElapsedTime");
    find(cu.alloc, "cuMemAlloc_v2");
    find(cu.host_alloc, "cuMemHostAlloc");
    find(cu.htod, "cuMemcpyHtoDAsync_v2");
    find(cu.dtoh, "cuMemcpyDtoHAsync_v2");
    find(cu.module_load, "cuModuleLoadData");
    find(cu.get_function, "cuModuleGetFunction");
    find(cu.launch, "cuLaunchKernel");
}

static void enter() {
    int device;
    Context context;
    CHECK(cu.device_get(&device, 0));
    CHECK(cu.retain(&context, device));
    CHECK(cu.set_current(context));
}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

static int launches(int count, int repeats, const char* cupti) {
    CHECK(cu.init(0));
    if (cupti) {
        const char* error = Counter::get().start(cupti, {CONCURRENT_KERNEL, MEMCPY, MEMCPY2, MEMSET, DEVICE, CONTEXT, STREAM,
                                                         SYNCHRONIZATION, OVERHEAD, MEMORY2, NAME, MARKER, DRIVER});
        if (error) {
            fprintf(stderr, "%s\n", error);
            return 3;
        }
    }
    enter();
    const char* ptx = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";
    Module module;
    Function empty;
    Stream stream;
    CHECK(cu.module_load(&module, ptx));
    CHECK(cu.get_function(&empty, module, "empty"));
    CHECK(cu.stream_create(&stream, 1));
    std::vector<double> times;
    for (int pass = 0; pass <= repeats; ++pass) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < count; ++i) {
            Result result = cu.launch(empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
            if (result) check(result, "cuLaunchKernel");
        }
        CHECK(cu.synchronize());
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        if (pass > 0) times.push_back(took.count() / count);
    }
    unsigned long long kernels = 0, lost = 0;
    if (cupti) {
        Counter::get().finish();
        kernels = Counter::get().count(CONCURRENT_KERNEL);
        lost = Counter::get().lost();
    }
    printf("{\"ns_per_launch\": %.1f, \"least\": %.1f, \"kernels\": %llu, \"issued\": %llu, \"lost\": %llu}\n", median(times),
           *std::min_element(times.begin(), times.end()), kernels, (unsigned long long)count * (repeats + 1), lost);
    return 0;
}

static int copies(size_t bytes, int count, int repeats) {
    CHECK(cu.init(0));
    enter();
    Address x, y;
    void *from, *to;
    CHECK(cu.alloc(&x, bytes));
    CHECK(cu.alloc(&y, bytes));
    CHECK(cu.host_alloc(&from, bytes, 1));
    CHECK(cu.host_alloc(&to, bytes, 1));
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    Stream up, down;
    Event start, end, other;
    CHECK(cu.stream_create(&up, 1));
    CHECK(cu.stream_create(&down, 1));
    CHECK(cu.event_create(&start, 0));
    CHECK(cu.event_create(&end, 0));
    CHECK(cu.event_create(&other, 0));
    double rates[3];
    for (int mode = 0; mode < 3; ++mode) {
        const bool does_up = mode != 1, does_down = mode != 0;
        std::vector<double> found;
        for (int pass = 0; pass <= repeats; ++pass) {
            CHECK(cu.synchronize());
            CHECK(cu.event_record(start, up));
            CHECK(cu.wait_event(down, start, 0));
            for (int i = 0; i < count; ++i) {
                if (does_up) CHECK(cu.htod(x, from, bytes, up));
                if (does_down) CHECK(cu.dtoh(to, y, bytes, down));
            }
            CHECK(cu.event_record(other, down));
            CHECK(cu.wait_event(up, other, 0));
            CHECK(cu.event_record(end, up));
            CHECK(cu.event_synchronize(end));
            float ms;
            CHECK(cu.elapsed(&ms, start, end));
            double moved = (double)bytes * count * (does_up + does_down);
            if (pass > 0) found.push_back(moved / ms / 1e6);
        }
        rates[mode] = median(found);
    }
    printf("{\"h2d\": %.3f, \"d2h\": %.3f, \"both\": %.3f}\n", rates[0], rates[1], rates[2]);
    return 0;
}

int main(int argc, char** argv) {
    load();
    if (argc >= 4 && !strcmp(argv[1], "launches")) return launches(atoi(argv[2]), atoi(argv[3]), argc > 4 ? argv[4] : nullptr);
    if (argc >= 5 && !strcmp(argv[1], "copies")) return copies(strtoull(argv[2], nullptr, 10), atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "usage: probe launches COUNT REPEATS [LIBCUPTI] | probe copies BYTES COUNT REPEATS\n");
    return 2;
}
