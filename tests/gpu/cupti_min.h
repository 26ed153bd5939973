/* The few functions of libcuda and libcupti that the programs beside this use, found at run time, so that they build
 * with a plain C++ compiler and run with whichever libraries a machine has. Values are those of cuda.h and cupti.h.
 *
 * `Counter` is the least that a collector can be: 256 KiB buffers from a free list, a thread that flushes every 20 ms,
 * and a walk over the completed records that counts them by kind. It is what cuptop's own cost is compared with. */
#pragma once
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

enum Kind : uint32_t { MEMCPY = 1, MEMSET = 2, DRIVER = 4, RUNTIME = 5, DEVICE = 8, CONTEXT = 9, CONCURRENT_KERNEL = 10,
    NAME = 11, MARKER = 12, OVERHEAD = 17, MEMCPY2 = 22, STREAM = 37, SYNCHRONIZATION = 38, MEMORY2 = 49 };

struct Cupti {
    void* library = nullptr;
    uint32_t (*subscribe)(void**, void (*)(void*, uint32_t, uint32_t, const void*), void*);
    uint32_t (*register_callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t));
    uint32_t (*enable)(uint32_t);
    uint32_t (*disable)(uint32_t);
    uint32_t (*flush_all)(uint32_t);
    uint32_t (*next_record)(uint8_t*, size_t, uint8_t**);
    uint32_t (*dropped)(void*, uint32_t, size_t*);
    uint32_t (*set_attribute)(uint32_t, size_t*, void*);
    uint32_t (*thread_id_type)(uint32_t);

    /* A path, else what is loaded already, else the toolkit's, else the loader's. */
    bool open(const char* path) {
        const char* names[] = {"libcupti.so.13", "libcupti.so.12"};
        if (path && *path) library = dlopen(path, RTLD_NOW);
        for (const char* name : names)
            if (!library) library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
        const char* toolkits[] = {"/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/", ""};
        for (const char* toolkit : toolkits)
            for (const char* name : names)
                if (!library) library = dlopen((std::string(toolkit) + name).c_str(), RTLD_NOW);
        return library && find(subscribe, "cuptiSubscribe") && find(register_callbacks, "cuptiActivityRegisterCallbacks") &&
               find(enable, "cuptiActivityEnable") && find(disable, "cuptiActivityDisable") &&
               find(flush_all, "cuptiActivityFlushAll") && find(next_record, "cuptiActivityGetNextRecord") &&
               find(dropped, "cuptiActivityGetNumDroppedRecords") && find(set_attribute, "cuptiActivitySetAttribute") &&
               find(thread_id_type, "cuptiSetThreadIdType");
    }

    template <class F>
    bool find(F& function, const char* name) {
        function = reinterpret_cast<F>(dlsym(library, name));
        return function != nullptr;
    }
};

class Counter {
public:
    static constexpr size_t BUFFER = 256 * 1024;
    static constexpr int FLUSH_MS = 20;

    static Counter& get() {
        static Counter* counter = new Counter;  // never destroyed: CUPTI may call back until the very end
        return *counter;
    }

    /* Returns null, or what went wrong. */
    const char* start(const char* path, const std::vector<uint32_t>& kinds) {
        if (!cupti.open(path)) return "no libcupti";
        if (cupti.subscribe(&subscriber, ignore, nullptr)) return "cuptiSubscribe failed";
        cupti.thread_id_type(1);
        uint8_t zeroed = 1, per_thread = 0;
        size_t size = 1;
        cupti.set_attribute(5, &size, &zeroed);
        cupti.set_attribute(9, &size, &per_thread);
        for (int i = 0; i < 32; ++i) free_buffers.push_back(make());
        if (cupti.register_callbacks(requested, completed)) return "cuptiActivityRegisterCallbacks failed";
        for (uint32_t kind : kinds)
            if (cupti.enable(kind)) return "cuptiActivityEnable failed";
        enabled = kinds;
        std::thread([this] {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, nullptr);
            std::unique_lock<std::mutex> lock(ending);
            while (!over) {
                wake.wait_for(lock, std::chrono::milliseconds(FLUSH_MS));
                if (!over) cupti.flush_all(0);
            }
        }).detach();
        return nullptr;
    }

    /* Flushes for the last time. */
    void finish() {
        {
            std::lock_guard<std::mutex> lock(ending);
            if (over) return;
            over = true;
        }
        wake.notify_all();
        for (uint32_t kind : enabled) cupti.disable(kind);
        cupti.flush_all(1);
        size_t lost = 0;
        cupti.dropped(nullptr, 0, &lost);
        dropped += lost;
    }

    uint64_t count(uint32_t kind) const { return counts[kind]; }
    uint64_t total() const {
        uint64_t sum = 0;
        for (auto& count : counts) sum += count;
        return sum;
    }
    uint64_t lost() const { return dropped; }
    void* subscriber = nullptr;

private:
    Cupti cupti;
    std::vector<uint32_t> enabled;
    std::vector<uint8_t*> free_buffers;
    std::mutex buffers, ending;
    std::condition_variable wake;
    bool over = false;
    std::atomic<uint64_t> counts[64] = {};
    std::atomic<uint64_t> dropped{0};

    static void ignore(void*, uint32_t, uint32_t, const void*) {}

    static uint8_t* make() {
        auto* buffer = static_cast<uint8_t*>(aligned_alloc(4096, BUFFER));
        memset(buffer, 0, BUFFER);
        return buffer;
    }

    static void requested(uint8_t** buffer, size_t* size, size_t* most) {
        Counter& self = get();
        std::lock_guard<std::mutex> lock(self.buffers);
        if (self.free_buffers.empty()) {
            *buffer = make();
        } else {
            *buffer = self.free_buffers.back();
            self.free_buffers.pop_back();
        }
        *size = BUFFER;
        *most = 0;
    }

    static void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
        Counter& self = get();
        uint8_t* record = nullptr;
        while (valid && self.cupti.next_record(buffer, valid, &record) == 0) {
            uint32_t kind;
            memcpy(&kind, record, sizeof kind);
            if (kind < 64) self.counts[kind].fetch_add(1, std::memory_order_relaxed);
        }
        memset(buffer, 0, BUFFER);
        std::lock_guard<std::mutex> lock(self.buffers);
        self.free_buffers.push_back(buffer);
    }
};
