/* PM sampling that makes samples up: SM 50 %, DRAM 25 %, everything else 1e9 a second. Structures as in NVIDIA's
 * cupti_pmsampling.h and cupti_profiler_host.h of CUDA 13.0. Part of libcupti.c.
 *
 * FAKE_PM_ENABLE    what cuptiPmSamplingEnable answers (26: another program has the counters; 35: no right)
 * FAKE_PM_ROOM      metrics that one pass holds (99); each name with "nv" in it is refused with 999, as on a machine with one GPU
 * FAKE_PM_CYCLES    samples cannot be told by time, as on GA100
 * FAKE_PM_AT        the decode at which one of these happens (3):
 * FAKE_PM_OVERFLOW  the hardware's buffer is full: it takes no rate and no start until it is enabled anew
 * FAKE_PM_DECODE    what cuptiPmSamplingDecodeData answers
 * FAKE_PM_LEAST     MiB of room without which it is full at the first decode
 * FAKE_PM_SET_UP    processor time that enabling takes, in ms
 * FAKE_PM_COST      and evaluating one sample, in us
 * FAKE_PM_DIES, FAKE_PM_HANGS
 */
typedef struct { size_t size; void *priv; } pm_initialize_t;
typedef struct { size_t size; void *priv; size_t device; const char *name; } pm_chip_t;
typedef struct { size_t size; void *priv; int type; const char *chip; const uint8_t *avail; void *host; } pm_host_t;
typedef struct { size_t size; void *priv; void *host; const char **names; size_t count; } pm_add_t;
typedef struct { size_t size; void *priv; void *host; size_t bytes; } pm_config_size_t;
typedef struct { size_t size; void *priv; void *host; size_t bytes; uint8_t *image; } pm_config_t;
typedef struct { size_t size; void *priv; size_t bytes; uint8_t *image; size_t passes; } pm_passes_t;
typedef struct { size_t size; void *priv; void *host; const uint8_t *image; size_t bytes, sample; const char **names; size_t count; double *values; } pm_evaluate_t;
typedef struct { size_t size; void *priv; size_t device, bytes; uint8_t *image; } pm_availability_t;
typedef struct { size_t size; void *priv; size_t device; void *object; } pm_enable_t;
typedef struct { size_t size; void *priv; void *object; } pm_object_t;
typedef struct { size_t size; void *priv; void *object; size_t bytes; const uint8_t *config; size_t buffer; uint64_t interval; int trigger, append; } pm_set_t;
typedef struct { size_t size; void *priv; void *object; const char **names; size_t count; uint32_t samples; size_t bytes; } pm_data_size_t;
typedef struct { size_t size; void *priv; void *object; size_t bytes; uint8_t *image; } pm_data_t;
typedef struct { size_t size; void *priv; void *object; uint8_t *image; size_t bytes; int reason; uint8_t overflow; } pm_decode_t;
typedef struct { size_t size; void *priv; const uint8_t *image; size_t bytes, total, populated, completed; } pm_info_t;
typedef struct { size_t size; void *priv; void *object; const uint8_t *image; size_t bytes, sample; uint64_t start, end; } pm_sample_t;

static struct { uint64_t interval, from, next, stopped; int running, sets, decodes, full; size_t room, metrics, buffer; } pm;

static uint64_t pm_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Uses the processor for so many us. */
static void pm_work(uint64_t us) {
    struct timespec t;
    uint64_t begun = 0, now;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = t.tv_sec * 1000000ull + t.tv_nsec / 1000;
        if (!begun) begun = now;
    } while (now - begun < us);
}

int cuptiProfilerInitialize(pm_initialize_t *p) { return p->size == 16 ? 0 : 1; }
int cuptiDeviceGetChipName(pm_chip_t *p) { p->name = "GH100"; return p->device == 0 && p->size == 32 ? 0 : 1; }
int cuptiPmSamplingGetCounterAvailability(pm_availability_t *p) { p->bytes = 8; if (p->image) memset(p->image, 1, 8); return 0; }
int cuptiProfilerHostInitialize(pm_host_t *p) {
    p->host = calloc(1, sizeof(size_t));
    return p->type == 1 && !strcmp(p->chip, "GH100") ? 0 : 46;
}
int cuptiProfilerHostDeinitialize(pm_object_t *p) { free(p->object); return 0; }
int cuptiProfilerHostConfigAddMetrics(pm_add_t *p) {
    for (size_t i = 0; i < p->count; i++)
        if (strstr(p->names[i], "nv")) return 999;
    *(size_t *)p->host = p->count;
    return 0;
}
int cuptiProfilerHostGetConfigImageSize(pm_config_size_t *p) { p->bytes = 8; return 0; }
int cuptiProfilerHostGetConfigImage(pm_config_t *p) { memcpy(p->image, p->host, 8); return 0; }
int cuptiProfilerHostGetNumOfPasses(pm_passes_t *p) {
    p->passes = *(size_t *)p->image > (size_t)number("FAKE_PM_ROOM", 99) ? 2 : 1;
    return 0;
}
int cuptiPmSamplingEnable(pm_enable_t *p) {
    p->object = &pm;
    pm.full = 0;
    pm_work(1000ull * number("FAKE_PM_SET_UP", 0));
    return number("FAKE_PM_ENABLE", 0);
}
int cuptiPmSamplingDisable(pm_object_t *p) { (void)p; pm.running = 0; pm.sets = 0; return 0; }
int cuptiPmSamplingSetConfig(pm_set_t *p) {
    if (pm.running || p->size != 64) return 7;
    if (pm.full) return 999;
    pm.buffer = p->buffer;
    if (getenv("FAKE_PM_CYCLES") && p->trigger == 1) return 27;
    if (pm.sets++) return 0; /* and nothing changes, as CUPTI 13.0 on an H100 */
    pm.interval = p->interval;
    pm.metrics = *(const size_t *)p->config;
    return 0;
}
int cuptiPmSamplingStart(pm_object_t *p) {
    (void)p;
    if (pm.running) return 7;
    if (pm.full) return 999;
    pm.running = 1;
    pm.next = pm_now();
    pm.from = pm.stopped ? pm.stopped : pm.next - 500000000;
    return 0;
}
int cuptiPmSamplingStop(pm_object_t *p) { (void)p; pm.running = 0; pm.stopped = pm_now(); return 0; }
int cuptiPmSamplingGetCounterDataSize(pm_data_size_t *p) {
    pm.room = p->samples;
    p->bytes = 64;
    return p->count == pm.metrics ? 0 : 1;
}
/* The image: its samples, the number of the first, and whether that reaches back. */
int cuptiPmSamplingCounterDataImageInitialize(pm_data_t *p) { memset(p->image, 0, p->bytes); return 0; }
int cuptiPmSamplingDecodeData(pm_decode_t *p) {
    uint64_t *image = (uint64_t *)p->image, now = pm.running ? pm_now() : pm.stopped;
    if (p->size != 45) return 1;
    if (++pm.decodes == number("FAKE_PM_AT", 3)) {
        if (getenv("FAKE_PM_DIES")) abort();
        if (getenv("FAKE_PM_HANGS")) for (;;) sleep(1);
        if (getenv("FAKE_PM_DECODE")) return number("FAKE_PM_DECODE", 0);
        if (getenv("FAKE_PM_OVERFLOW")) pm.full = 1;
    }
    if (getenv("FAKE_PM_LEAST") && pm.buffer < (size_t)number("FAKE_PM_LEAST", 0) << 20) pm.full = 1;
    p->overflow = pm.full;
    image[1] = pm.next;
    image[2] = pm.from;
    while (!pm.full && pm.next + pm.interval <= now && image[0] < pm.room) { image[0]++; pm.next += pm.interval; }
    if (image[0]) pm.from = 0;
    p->reason = image[0] == pm.room ? 1 : 2;
    return pm.full ? 8 : 0; /* as CUPTI 13.0 on an H100 */
}
int cuptiPmSamplingGetCounterDataInfo(pm_info_t *p) { p->completed = p->populated = p->total = ((const uint64_t *)p->image)[0]; return 0; }
int cuptiPmSamplingCounterDataGetSampleInfo(pm_sample_t *p) {
    const uint64_t *image = (const uint64_t *)p->image;
    p->start = p->sample || !image[2] ? image[1] + p->sample * pm.interval : image[2];
    p->end = image[1] + (p->sample + 1) * pm.interval;
    return p->sample < image[0] ? 0 : 1;
}
int cuptiProfilerHostEvaluateToGpuValues(pm_evaluate_t *p) {
    pm_work(number("FAKE_PM_COST", 0));
    for (size_t i = 0; i < p->count; i++)
        p->values[i] = strstr(p->names[i], "sm__cycles") ? 50 : strstr(p->names[i], "dram__throughput") ? 25 : strstr(p->names[i], "pct") ? 10 : 1e9;
    return 0;
}
