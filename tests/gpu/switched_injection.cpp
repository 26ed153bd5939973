/* A least collector (see Counter in cupti_min.h) that switches further activity kinds on and off again. What those kinds
 * cost after they were switched off is CUPTI's own.
 *
 *   SWITCHED=38,36   the kinds, in this order
 *   ALL_SYNC=0       also calls cuptiActivityEnableAllSyncRecords(0) after them; =1 calls it with 1 when they are switched off, too
 *   CALLBACKS=1      in the place of records a callback at cuStreamWaitEvent and cuEventRecord, which does nothing
 *   SWITCHED_S=2     seconds until they are switched on, and again until off
 *   SWITCHED_OUT     a file that gets CLOCK_MONOTONIC in seconds of both */
#include <ctime>

#include "cupti_min.h"

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Callbacks of the driver API's functions of events, on or off. */
static void callbacks(Cupti& cupti, uint32_t on) {
    uint32_t (*name_of)(uint32_t, uint32_t, const char**) = nullptr;
    uint32_t (*enable)(uint32_t, void*, uint32_t, uint32_t) = nullptr;
    const uint32_t driver_api = 1;
    if (!cupti.find(name_of, "cuptiGetCallbackName") || !cupti.find(enable, "cuptiEnableCallback")) return;
    for (uint32_t id = 1; id < 1000; ++id) {
        const char* name = nullptr;
        if (name_of(driver_api, id, &name) || !name) continue;
        if (!strncmp(name, "cuStreamWaitEvent", 17) || !strncmp(name, "cuEventRecord", 13))
            enable(on, Counter::get().subscriber, driver_api, id);
    }
}

static void switch_later() {
    Cupti cupti;
    uint32_t (*all_sync)(uint8_t) = nullptr;
    if (!cupti.open(getenv("MINIMAL_CUPTI"))) return;
    cupti.find(all_sync, "cuptiActivityEnableAllSyncRecords");
    const char* wanted = getenv("ALL_SYNC");
    if (!wanted || !*wanted) all_sync = nullptr;
    std::vector<uint32_t> kinds;
    for (const char* at = getenv("SWITCHED"); at && *at;) {
        char* end;
        kinds.push_back((uint32_t)strtoul(at, &end, 10));
        at = *end ? end + 1 : end;
    }
    const char* text = getenv("SWITCHED_S");
    auto pause = std::chrono::duration<double>(text ? atof(text) : 2.0);
    std::this_thread::sleep_for(pause);
    double on = now();
    for (uint32_t kind : kinds) cupti.enable(kind);
    if (all_sync) all_sync(0);
    if (getenv("CALLBACKS")) callbacks(cupti, 1);
    std::this_thread::sleep_for(pause);
    for (uint32_t kind : kinds) cupti.disable(kind);
    if (all_sync && *wanted == '1') all_sync(1);
    if (getenv("CALLBACKS")) callbacks(cupti, 0);
    double off = now();
    if (FILE* out = fopen(getenv("SWITCHED_OUT"), "w")) {
        fprintf(out, "%.6f %.6f\n", on, off);
        fclose(out);
    }
}

extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
    static std::once_flag once;
    std::call_once(once, [] {
        const char* error = Counter::get().start(getenv("MINIMAL_CUPTI"), {CONCURRENT_KERNEL, MEMCPY, MEMSET, RUNTIME});
        if (error) fprintf(stderr, "switched_injection: %s\n", error);
        else std::thread(switch_later).detach();
    });
    return 1;
}
