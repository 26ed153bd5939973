/* A library with NVML's names, types and codes, and no GPU behind it: two devices. The types stand here as in NVIDIA's
   nvml.h, not as in the Rust that is tested with it. Made with
     -DNO_GPM          an older GPU and driver: no GPM functions
     -DGPM_UNSUPPORTED the functions are there, this GPU has no GPM
     -DFORBIDDEN       nobody may read power, processes and errors
     -DNO_INIT=code    nvmlInit fails
     -DXID=code        the second device has this error
   FAKE_NVML_THROTTLE names the event reasons of the first device, FAKE_NVML_PIDS its further processes (numbers with commas
   between), FAKE_NVML_DRAWS processes that draw on the first device, FAKE_NVML_OWN a file with the id of the process that is listed first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int nvmlReturn_t;
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10,
       VERSION_MISMATCH = 25 };

typedef struct nvmlDevice_st { const char *uuid; unsigned watts, clock; } *nvmlDevice_t;
/* The order of NVML's list is not that of CUDA's. */
static struct nvmlDevice_st devices[2] = {
    { "GPU-22222222-2222-2222-2222-222222222222", 222, 1222 },
    { "GPU-01020304-0506-0708-090a-0b0c0d0e0f10", 111, 1111 },
};

#ifndef NO_INIT
#define NO_INIT 0
#endif
nvmlReturn_t nvmlInit_v2(void) { return NO_INIT; }
nvmlReturn_t nvmlShutdown(void) { return SUCCESS; }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (int i = 0; i < 2; i++)
        if (!strcmp(devices[i].uuid, uuid)) { *device = &devices[i]; return SUCCESS; }
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (index > 1) return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}
static nvmlReturn_t text(const char *from, char *to, unsigned int length) {
    if (length <= strlen(from)) return INSUFFICIENT_SIZE;
    strcpy(to, from);
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) { return text(device->uuid, uuid, length); }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    return text(device == &devices[0] ? "Fake A" : "Fake B", name, length);
}
/* Device files are numbered in an order of their own, too. */
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) { *minor = device == &devices[0] ? 7 : 3; return SUCCESS; }

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power) {
#ifdef FORBIDDEN
    return NO_PERMISSION;
#endif
    *power = device->watts * 1000;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) { *limit = 700000; return SUCCESS; }
typedef enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1 } nvmlClockType_t;
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    if (type != NVML_CLOCK_SM) return INVALID_ARGUMENT;
    *clock = device->clock;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock) {
    if (type != NVML_CLOCK_SM) return INVALID_ARGUMENT;
    *clock = 1980;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *temp) {
    if (sensor != 0) return INVALID_ARGUMENT;
    *temp = 41;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
    const char *said = getenv("FAKE_NVML_THROTTLE");
    *reasons = device == &devices[1] && said ? strtoull(said, NULL, 0) : 0;
    return SUCCESS;
}

typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) return VERSION_MISMATCH;
    *memory = (nvmlMemory_v2_t){ memory->version, 1000000, 200000, 100000, 700000 };
    return SUCCESS;
}

typedef struct { unsigned int pid; unsigned long long usedGpuMemory; unsigned int gpuInstanceId, computeInstanceId; } nvmlProcessInfo_t;
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
#ifdef FORBIDDEN
    return NO_PERMISSION;
#endif
    static nvmlProcessInfo_t all[64];
    unsigned n = 0;
    const char *own = getenv("FAKE_NVML_OWN"), *others = getenv("FAKE_NVML_PIDS");
    if (device == &devices[1]) {
        FILE *file = own ? fopen(own, "r") : NULL;
        unsigned id;
        if (file && fscanf(file, "%u", &id) == 1) all[n++] = (nvmlProcessInfo_t){ id, 1 << 20, ~0u, ~0u };
        if (file) fclose(file);
        while (others && *others && n < 64) {
            char *end;
            unsigned pid = strtoul(others, &end, 10);
            /* The memory of a process with an odd id is not told. */
            all[n++] = (nvmlProcessInfo_t){ pid, pid % 2 ? ~0ull : pid * 1024ull, ~0u, ~0u };
            others = *end ? end + 1 : end;
        }
    }
    if (*count < n) { *count = n; return INSUFFICIENT_SIZE; }
    memcpy(infos, all, n * sizeof *all);
    *count = n;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
    const char *draws = getenv("FAKE_NVML_DRAWS");
    unsigned n = 0, room = *count;
    while (device == &devices[0] && draws && *draws) {
        char *end;
        unsigned pid = strtoul(draws, &end, 10);
        if (n < room) infos[n] = (nvmlProcessInfo_t){ pid, 4 << 20, ~0u, ~0u };
        n++;
        draws = *end ? end + 1 : end;
    }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    *utilization = (nvmlUtilization_t){ device == &devices[0] ? 0 : 87, 55 };
    return SUCCESS;
}

typedef struct { unsigned int pid; unsigned long long timeStamp; unsigned int smUtil, memUtil, encUtil, decUtil; } nvmlProcessUtilizationSample_t;
/* Every process of the second device used it, an older sample says otherwise; nobody used the first. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
                                             unsigned long long lastSeenTimeStamp) {
    nvmlProcessInfo_t all[64];
    unsigned n = 64, room = *count;
    if (nvmlDeviceGetComputeRunningProcesses_v3(device, &n, all) != SUCCESS) return NOT_SUPPORTED;
    if (n == 0) return NOT_FOUND;
    *count = 2 * n;
    if (!samples || room < 2 * n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        samples[2 * i] = (nvmlProcessUtilizationSample_t){ all[i].pid, lastSeenTimeStamp + 2, 40 + i, 1, 0, 0 };
        samples[2 * i + 1] = (nvmlProcessUtilizationSample_t){ all[i].pid, lastSeenTimeStamp + 1, 7, 1, 0, 0 };
    }
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) { *generation = 5; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width) { *width = 16; return SUCCESS; }

#ifndef XID
#define XID 0
#endif
typedef struct nvmlEventSet_st { nvmlDevice_t device; int told; } *nvmlEventSet_t;
typedef struct { nvmlDevice_t device; unsigned long long eventType, eventData; unsigned int gpuInstanceId, computeInstanceId; } nvmlEventData_t;
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) { *set = calloc(1, sizeof **set); return SUCCESS; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { free(set); return SUCCESS; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
#ifdef FORBIDDEN
    return NO_PERMISSION;
#endif
    if (types != 8) return INVALID_ARGUMENT;
    set->device = device;
    return SUCCESS;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout) {
    if (!XID || set->device != &devices[1] || set->told++) return TIMEOUT;
    *data = (nvmlEventData_t){ set->device, 8, XID, ~0u, ~0u };
    return SUCCESS;
}

#ifndef NO_GPM
typedef struct nvmlGpmSample_st { int number; } *nvmlGpmSample_t;
typedef struct {
    unsigned int metricId; nvmlReturn_t nvmlReturn; double value;
    struct { char *shortName, *longName, *unit; } metricInfo;
} nvmlGpmMetric_t;
typedef struct { unsigned int version, numMetrics; nvmlGpmSample_t sample1, sample2; nvmlGpmMetric_t metrics[98]; } nvmlGpmMetricsGet_t;
typedef struct { unsigned int version, isSupportedDevice; } nvmlGpmSupport_t;

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    if (support->version != 1) return VERSION_MISMATCH;
#ifdef GPM_UNSUPPORTED
    support->isSupportedDevice = 0;
#else
    support->isSupportedDevice = 1;
#endif
    return SUCCESS;
}
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) { *sample = calloc(1, sizeof **sample); return SUCCESS; }
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) { free(sample); return SUCCESS; }
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    static int number;
    sample->number = ++number;
    return SUCCESS;
}
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get) {
    if (get->version != 1) return VERSION_MISMATCH;
    /* The older first. */
    if (get->sample1->number == 0 || get->sample1->number >= get->sample2->number) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &get->metrics[i];
        metric->nvmlReturn = SUCCESS;
        metric->metricInfo.unit = "";
        switch (metric->metricId) {
        case 2: metric->value = 30; break;
        case 3: metric->value = 15; break;
        case 5: metric->value = 5.5; break;
        case 10: metric->value = 13; break;
        case 20: metric->value = 512; break;
        case 21: metric->value = 1024; break;
        case 60: case 61: metric->nvmlReturn = NOT_SUPPORTED; break;
        default: metric->nvmlReturn = INVALID_ARGUMENT;
        }
    }
    return SUCCESS;
}
#endif
