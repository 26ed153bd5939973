/* A libcupti that makes records instead of collecting them.
 *
 * FAKE_VERSION     what cuptiGetVersion says (130001)
 * FAKE_EXTRA       bytes by which every record is longer than in 13.0
 * FAKE_TAKEN       another tool is subscribed
 * FAKE_LATE        buffers come back 30 ms late, on a thread of their own
 * FAKE_ROOM        records in a buffer, at most
 * FAKE_CALLS_LATE  one of eight calls to the subscriber comes so many milliseconds late
 * FAKE_WITHHOLD    something is unfinished in every buffer: only a forced flush hands it out
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

typedef void (*requested_t)(uint8_t **, size_t *, size_t *);
typedef void (*completed_t)(void *, uint32_t, uint8_t *, size_t, size_t);

static requested_t requested;
static completed_t completed;
static uint8_t *buffer;
static size_t room, used, count;
static size_t dropped;
static int subscribed, enabled[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int number(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

/* Sizes in CUDA 13.0, by kind. */
static size_t size_of(uint32_t kind) {
    size_t size;
    switch (kind) {
    case 1: size = 96; break;
    case 2: size = 88; break;
    case 3: case 10: size = 216; break;
    case 4: case 5: size = 40; break;
    case 8: size = 184; break;
    case 9: size = 32; break;
    case 11: size = 32; break;
    case 12: size = 56; break;
    case 13: size = 40; break;
    case 17: size = 56; break;
    case 22: size = 96; break;
    case 36: size = 56; break;
    case 37: size = 24; break;
    case 38: size = 56; break;
    case 39: size = 24; break;
    case 49: size = 128; break;
    case 51: size = 56; break;
    default: return 0;
    }
    return size + number("FAKE_EXTRA", 0);
}

int cuptiGetVersion(uint32_t *version) { *version = number("FAKE_VERSION", 130001); return 0; }

typedef void (*callback_t)(void *, uint32_t, uint32_t, const void *);
static callback_t notice;
static void *notice_data;
static int noticed[32], at_launches[3];

/* Calls the subscriber. The documentation promises that no call begins once it has gone, and not that those under way are over. */
static void tell(uint32_t domain, uint32_t id, const void *details) {
    static unsigned calls;
    callback_t called = __atomic_load_n(&notice, __ATOMIC_SEQ_CST);
    if (!called || !(domain == 3 ? noticed[id] : at_launches[domain])) return;
    int late = number("FAKE_CALLS_LATE", 0);
    if (late && __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST) % 8 == 0) usleep(late * 1000);
    called(notice_data, domain, id, details);
}

static void *stay(void *nothing) { for (;;) pause(); return nothing; }

/* The first subscriber's thread starts one that stays, and inherits its name. */
int cuptiSubscribe(void **subscriber, void *callback, void *data) {
    static pthread_t own;
    if (subscribed || getenv("FAKE_TAKEN")) return 39;
    subscribed = 1;
    if (!own) pthread_create(&own, NULL, stay, NULL);
    notice_data = data;
    __atomic_store_n(&notice, (callback_t)callback, __ATOMIC_SEQ_CST);
    *subscriber = &subscribed;
    return 0;
}

struct params { size_t size; const char *name; char *old; size_t old_size; };

int cuptiSubscribe_v2(void **subscriber, void *callback, void *data, struct params *params) {
    if (params->size != sizeof *params || params->old_size < 64) return 1;
    if (subscribed || getenv("FAKE_TAKEN")) {
        snprintf(params->old, params->old_size, "Some Other Profiler");
        return 39;
    }
    return cuptiSubscribe(subscriber, callback, data);
}

/* Of launches it calls for both APIs, of resources for those that are asked for. */
int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t id) {
    (void)subscriber;
    if (domain == 1 && id == 307) at_launches[1] = on;
    if (domain == 2 && id == 211) at_launches[2] = on;
    if (domain != 3) return 0;
    if (id >= 32 || (id > 21 && number("FAKE_VERSION", 130001) < 130000)) return 1;
    noticed[id] = on;
    return 0;
}

/* A node is as good as its id. */
int cuptiGetGraphNodeId(void *node, uint64_t *id) { *id = (uint64_t)(uintptr_t)node; return 0; }

struct graph_data { void *graph, *original_graph, *node, *original_node; uint32_t type; void *dependency, *executable; };
struct resource { void *context, *handle; struct graph_data *descriptor; };

/* What CUPTI tells of a graph (9 it was made) and of a node of it: 13 it was made, 20 cloned, 22 updated. */
void fake_node(uint32_t id, uint64_t node, uint64_t of, uint32_t type) {
    static int graph;
    struct graph_data data = { .graph = &graph, .node = (void *)(uintptr_t)node, .original_node = (void *)(uintptr_t)of, .type = type };
    struct resource resource = { .descriptor = &data };
    if (id < 32) tell(3, id, &resource);
}

void fake_launch(uint32_t correlation, uint64_t ns);
static void *make_node(void *node) { fake_node(13, *(uint64_t *)node, 0, 0); return NULL; }
static void *make_launch(void *number) { fake_launch(*(uint64_t *)number, 100); return NULL; }

/* A node, or a launch, of a thread of that name, which the calling one waits for. */
void fake_elsewhere(uint64_t number, int is_launch, const char *name) {
    pthread_t thread;
    char own[16];
    prctl(PR_GET_NAME, own);
    prctl(PR_SET_NAME, name);
    if (!pthread_create(&thread, NULL, is_launch ? make_launch : make_node, &number)) pthread_join(thread, NULL);
    prctl(PR_SET_NAME, own);
}

struct module_data { uint32_t id; size_t size; const char *cubin; };
struct crc { size_t size, length; const uint8_t *cubin; uint64_t crc; };

/* Modules are told apart by the sum of their bytes. */
int cuptiGetCubinCrc(struct crc *p) {
    if (p->size != 32 || !p->cubin) return 1;
    p->crc = 0;
    for (size_t i = 0; i < p->length; i++) p->crc += p->cubin[i];
    return 0;
}

/* Tells of the module in the file FAKE_MODULE, which is gone afterwards. Returns its number. */
static uint64_t fake_module(void) {
    static char code[1 << 16];
    FILE *file = getenv("FAKE_MODULE") ? fopen(getenv("FAKE_MODULE"), "rb") : NULL;
    struct module_data data = { .id = 1, .cubin = code };
    struct { void *context, *handle; struct module_data *descriptor; } resource = { .descriptor = &data };
    if (!file) return 0;
    data.size = fread(code, 1, sizeof code, file);
    fclose(file);
    tell(3, 6, &resource);
    struct crc crc = { .size = sizeof crc, .length = data.size, .cubin = (uint8_t *)code };
    cuptiGetCubinCrc(&crc);
    memset(code, 0, sizeof code);
    return crc.crc;
}

/* Ends programs that replay graphs: nobody is to call it. */
int cuptiFinalize(void) { abort(); }

int cuptiUnsubscribe(void *subscriber) {
    (void)subscriber;
    __atomic_store_n(&notice, NULL, __ATOMIC_SEQ_CST);
    memset(noticed, 0, sizeof noticed);
    memset(at_launches, 0, sizeof at_launches);
    subscribed = 0;
    return 0;
}

int cuptiActivityRegisterCallbacks(requested_t r, completed_t c) { requested = r; completed = c; return 0; }

int cuptiActivityEnable(uint32_t kind) {
    if (!subscribed || !completed) return 1;
    if (kind < 64) enabled[kind] = 1;
    return 0;
}

int cuptiActivityDisable(uint32_t kind) { if (kind < 64) enabled[kind] = 0; return 0; }

struct late { uint8_t *buffer; size_t size, valid; };

static void *return_late(void *argument) {
    struct late *late = argument;
    usleep(30000);
    completed(NULL, 0, late->buffer, late->size, late->valid);
    free(late);
    return NULL;
}

static void give_back(void) {
    if (!buffer) return;
    if (getenv("FAKE_LATE")) {
        struct late *late = malloc(sizeof *late);
        pthread_t thread;
        late->buffer = buffer; late->size = room; late->valid = used;
        pthread_create(&thread, NULL, return_late, late);
        pthread_detach(thread);
    } else {
        completed(NULL, 0, buffer, room, used);
    }
    buffer = NULL;
}

int cuptiActivityFlushAll(uint32_t flags) {
    pthread_mutex_lock(&lock);
    if (flags || !getenv("FAKE_WITHHOLD")) give_back();
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *start, size_t valid, uint8_t **record) {
    uint8_t *next = start;
    if (*record) {
        size_t size = size_of(*(uint32_t *)*record);
        if (!size) return 21;
        next = *record + size;
    }
    if (next + 4 > start + valid) return 12;
    if (*(uint32_t *)next == 0 && *record) return 12;
    if (!size_of(*(uint32_t *)next)) return 21;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n) {
    (void)context; (void)stream;
    pthread_mutex_lock(&lock);
    *n = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value) {
    (void)attribute; (void)size; (void)value;
    return 0;
}
int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value) {
    (void)attribute; (void)size; (void)value;
    return 0;
}
int cuptiSetThreadIdType(uint32_t type) { return type == 1 ? 0 : 1; }
int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on) { (void)id; (void)on; return 0; }
int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on) { (void)id; (void)on; return 0; }

int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
    if (domain == 2 && id == 211) *name = "cudaLaunchKernel_v7000";
    else if (domain == 2 && id == 135) *name = "cudaEventRecord_v3020";
    else if (domain == 1 && id == 307) *name = "cuLaunchKernel";
    else if (domain == 2 && id == 335) *name = "cudaGraphExecUpdate_v10020";
    else return 1;
    return 0;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

int cuptiGetTimestamp(uint64_t *time) { *time = now(); return 0; }

static void *nvtx;
int InitializeInjectionNvtx2(void *table) { nvtx = table; return table ? 1 : 0; }
/* What NVTX was injected with. */
void *fake_nvtx(void) { return nvtx; }

/* ---- making records ---- */

static uint8_t *record(uint32_t kind, size_t size) {
    if (buffer && (used + size > room || (int)count >= number("FAKE_ROOM", 1 << 30))) give_back();
    if (!buffer) {
        size_t most;
        used = count = 0;
        requested(&buffer, &room, &most);
        if (!buffer || used + size > room) { dropped++; buffer = NULL; return NULL; }
    }
    uint8_t *made = buffer + used;
    for (size_t at = 0; at < size; at++)
        if (made[at]) { fprintf(stderr, "the buffer was not zeroed\n"); abort(); }
    memset(made, 0xee, size);
    *(uint32_t *)made = kind;
    used += size;
    count++;
    return made;
}

static void p8(uint8_t *r, size_t at, uint8_t v) { if (r) r[at] = v; }
static void p16(uint8_t *r, size_t at, uint16_t v) { if (r) memcpy(r + at, &v, 2); }
static void p32(uint8_t *r, size_t at, uint32_t v) { if (r) memcpy(r + at, &v, 4); }
static void p64(uint8_t *r, size_t at, uint64_t v) { if (r) memcpy(r + at, &v, 8); }
static void text(uint8_t *r, size_t at, const char *v) { p64(r, at, (uint64_t)(uintptr_t)v); }

static void kernel(uint32_t correlation, uint64_t start, uint64_t end, const char *name) {
    uint8_t *r = record(10, size_of(10));
    p16(r, 6, 32);
    p64(r, 16, start); p64(r, 24, end);
    p32(r, 40, 0); p32(r, 44, 1); p32(r, 48, 7);
    for (int i = 0; i < 3; i++) { p32(r, 52 + 4 * i, 10 + i); p32(r, 64 + 4 * i, 20 + i); p32(r, 176 + 4 * i, i); }
    p32(r, 76, 100); p32(r, 80, 200); p32(r, 84, 300);
    p32(r, 92, correlation);
    text(r, 104, name);
    p64(r, 144, 55); p32(r, 156, 5); p32(r, 168, 3); p32(r, 172, 1);
}

static void call(uint32_t kind, uint32_t id, uint32_t correlation, uint64_t start, uint64_t end) {
    uint8_t *r = record(kind, size_of(kind));
    p32(r, 4, id); p64(r, 8, start); p64(r, 16, end);
    p32(r, 24, getpid()); p32(r, 28, syscall(SYS_gettid)); p32(r, 32, correlation); p32(r, 36, 0);
}

struct launch { uint32_t site; const void *unused[5]; uint32_t context; uint64_t *kept; uint32_t correlation; };

static void at_launch(uint32_t domain, uint32_t id, uint32_t site, uint64_t *kept, uint32_t correlation) {
    struct launch launch = { .site = site, .kept = kept, .correlation = correlation };
    tell(domain, id, &launch);
}

/* A launch: its call with the driver's inside, which no record tells of, and its kernel, `nanoseconds` long. */
void fake_launch(uint32_t correlation, uint64_t nanoseconds) {
    uint64_t kept[2] = {0, 0};
    at_launch(2, 211, 0, kept, correlation);
    at_launch(1, 307, 0, kept + 1, correlation + (1u << 30));
    at_launch(1, 307, 1, kept + 1, correlation + (1u << 30));
    at_launch(2, 211, 1, kept, correlation);
    pthread_mutex_lock(&lock);
    if (enabled[10] && enabled[5]) {
        uint64_t time = now() - 1000000;
        call(5, 211, correlation, time, time + 100);
        kernel(correlation, time + 200, time + 200 + nanoseconds, correlation % 2 ? "_Z3oddv" : "_Z4evenv");
    }
    pthread_mutex_unlock(&lock);
}

/* One end of an NVTX range of this thread: its beginning with a name, its end without. */
void fake_range(uint32_t id, const char *name) {
    pthread_mutex_lock(&lock);
    if (enabled[12]) {
        uint8_t *r = record(12, size_of(12));
        p32(r, 4, name ? 2 : 4); p64(r, 8, now()); p32(r, 16, id); p32(r, 20, 2);
        p32(r, 24, getpid()); p32(r, 28, syscall(SYS_gettid)); text(r, 40, name); text(r, 48, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* A stream that was told to wait for an event. */
void fake_wait(uint32_t correlation) {
    pthread_mutex_lock(&lock);
    if (enabled[38]) {
        uint64_t time = now();
        uint8_t *r = record(38, size_of(38));
        p32(r, 4, 2); p64(r, 8, time - 100); p64(r, 16, time); p32(r, 24, correlation); p32(r, 28, 1); p32(r, 32, 7); p32(r, 36, 21);
    }
    pthread_mutex_unlock(&lock);
}

/* A call of a function by its number. */
void fake_call(uint32_t id, uint32_t correlation) {
    pthread_mutex_lock(&lock);
    uint64_t time = now() - 1000000;
    call(5, id, correlation, time, time + 100);
    pthread_mutex_unlock(&lock);
}

/* A kernel of a graph that runs now. */
void fake_replay(uint32_t correlation, uint64_t node) {
    pthread_mutex_lock(&lock);
    uint64_t time = now() - 1000000;
    kernel(correlation, time, time + 1000, "_Z4nodev");
    p64(buffer + used - size_of(10), 144, node);
    p32(buffer + used - size_of(10), 156, node >> 32);
    pthread_mutex_unlock(&lock);
}

/* A kernel of a graph, whose times CUPTI has lost. */
void fake_timeless(uint32_t correlation) {
    pthread_mutex_lock(&lock);
    kernel(correlation, 0, 0, "_Z4nodev");
    pthread_mutex_unlock(&lock);
}

/* CUPTI says that it dropped some. */
void fake_drop(uint32_t records) {
    pthread_mutex_lock(&lock);
    dropped += records;
    pthread_mutex_unlock(&lock);
}

/* Streams that were made before anybody looked are told on demand. */
int cuptiActivityEnableAndDump(uint32_t kind) {
    if (kind == 37) {
        pthread_mutex_lock(&lock);
        uint8_t *r = record(37, size_of(37));
        p32(r, 4, 1); p32(r, 8, 23); p32(r, 12, -5); p32(r, 16, 2); p32(r, 20, 0);
        pthread_mutex_unlock(&lock);
    }
    return cuptiActivityEnable(kind);
}

/* One of everything. */
void fake_everything(void) {
    pthread_mutex_lock(&lock);
    uint64_t t = now() - 1000000;
    uint8_t *r;
    uint32_t thread = syscall(SYS_gettid);

    r = record(8, size_of(8)); /* device */
    p64(r, 8, 4800000000ull / 1000); p64(r, 16, 1ull << 37); p32(r, 32, 32); p32(r, 36, 1980000); p32(r, 40, 10); p32(r, 44, 132);
    p32(r, 52, 64); p32(r, 56, 32); p32(r, 60, 233472); p32(r, 64, 65536); p32(r, 104, 9); p32(r, 108, 0); p32(r, 112, 0);
    for (int i = 0; i < 16; i++) p8(r, 120 + i, i + 1);
    text(r, 136, "NVIDIA Fake"); p8(r, 144, 1);
    r = record(9, size_of(9)); /* context */
    p32(r, 4, 1); p32(r, 8, 0); p16(r, 14, 7);
    r = record(37, size_of(37)); /* stream */
    p32(r, 4, 1); p32(r, 8, 13); p32(r, 12, -2); p32(r, 16, 2); p32(r, 20, 0);
    r = record(11, size_of(11)); /* name of a stream */
    p32(r, 4, 5); p32(r, 8, 0); p32(r, 12, 1); p32(r, 16, 13); text(r, 24, "upload");
    r = record(11, size_of(11)); /* name of a thread */
    p32(r, 4, 2); p32(r, 8, getpid()); p32(r, 12, thread); text(r, 24, "the loop");

    kernel(101, t + 10, t + 30, "_Z6matmulPf");
    r = record(1, size_of(1)); /* copy */
    p8(r, 4, 1); p8(r, 5, 2); p8(r, 6, 3); p8(r, 7, 1); p64(r, 8, 4096); p64(r, 16, t + 31); p64(r, 24, t + 40);
    p32(r, 32, 0); p32(r, 36, 1); p32(r, 40, 13); p32(r, 44, 102); p32(r, 72, 0); p32(r, 76, 8); p32(r, 80, 2);
    r = record(22, size_of(22)); /* copy between devices */
    p8(r, 4, 10); p8(r, 5, 3); p8(r, 6, 3); p8(r, 7, 1); p64(r, 8, 8192); p64(r, 16, t + 41); p64(r, 24, t + 50);
    p32(r, 32, 0); p32(r, 36, 1); p32(r, 40, 13); p32(r, 44, 0); p32(r, 52, 1); p32(r, 60, 103); p32(r, 80, 0);
    r = record(2, size_of(2)); /* memset */
    p64(r, 8, 512); p64(r, 16, t + 51); p64(r, 24, t + 60); p32(r, 32, 0); p32(r, 36, 1); p32(r, 40, 13); p32(r, 44, 104); p32(r, 72, 0);
    call(4, 307, 105, t + 61, t + 62); /* driver API */
    for (int kind = 1; kind <= 4; kind++) { /* synchronisations */
        r = record(38, size_of(38));
        p32(r, 4, kind); p64(r, 8, t + 63); p64(r, 16, t + 70); p32(r, 24, 106); p32(r, 28, 1);
        p32(r, 32, kind == 4 ? 0xffffffff : 13); p32(r, 36, kind <= 2 ? 21 : 0xffffffff);
    }
    r = record(17, size_of(17)); /* overhead */
    p32(r, 4, 5 << 16); p32(r, 8, 2); p32(r, 12, getpid()); p32(r, 16, thread); p64(r, 24, t + 71); p64(r, 32, t + 80); p32(r, 40, 107);
    for (int action = 1; action <= 2; action++) { /* memory */
        r = record(49, size_of(49));
        p32(r, 4, action); p32(r, 8, 3); p32(r, 12, 108); p64(r, 16, 0x7f0000000000ull); p64(r, 24, 1 << 20); p64(r, 32, t + 80 + action);
        p32(r, 48, getpid()); p32(r, 52, 0); p32(r, 56, 1); p32(r, 60, 13); p32(r, 72, 1);
    }
    r = record(36, size_of(36)); /* an event, before its call */
    p32(r, 4, 109); p32(r, 8, 1); p32(r, 12, 13); p32(r, 16, 21); p32(r, 24, 0);
    call(5, 135, 109, t + 90, t + 91);
    call(5, 135, 110, t + 92, t + 93);
    r = record(36, size_of(36)); /* and one after it */
    p32(r, 4, 110); p32(r, 8, 1); p32(r, 12, 13); p32(r, 16, 22); p32(r, 24, 0);
    for (int end = 0; end <= 1; end++) { /* an NVTX range */
        r = record(12, size_of(12));
        p32(r, 4, end ? 4 : 2); p64(r, 8, t + 100 + 20 * end); p32(r, 16, 1); p32(r, 20, 2);
        p32(r, 24, getpid()); p32(r, 28, thread); text(r, 40, end ? NULL : "forward"); text(r, 48, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* Launches of a graph, recorded as a whole where that was asked for and by its node otherwise. */
void fake_graphs(uint32_t launches) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i <= launches; i++) {
        uint64_t t = now() - 1000000;
        if (!enabled[51]) { kernel(i, t, t + 100, "_Z4nodev"); continue; }
        uint8_t *r = record(51, size_of(51));
        p32(r, 4, i); p64(r, 8, t); p64(r, 16, t + 1000 + i); p32(r, 24, 0); p32(r, 28, 9); p32(r, 32, 1); p32(r, 36, 13);
    }
    pthread_mutex_unlock(&lock);
}

/* What a collector must reject, each once: no start, no end, backwards, far future, far past, and a kind whose size is known
   and whose meaning is not. */
void fake_rejects(void) {
    pthread_mutex_lock(&lock);
    uint64_t t = now() - 1000000;
    kernel(201, 0, t, "_Z3badv");
    kernel(202, t, 0, "_Z3badv");
    kernel(203, t, t - 1, "_Z3badv");
    kernel(204, t, t + 3600000000000ull, "_Z3badv");
    kernel(205, 0x8000000000000000ull, 0x8000000000000001ull, "_Z3badv");
    kernel(206, 1, 2, "_Z3badv");
    record(39, size_of(39));
    pthread_mutex_unlock(&lock);
}

/* A kind that nobody knows the size of, alone in a buffer. */
void fake_unknown(void) {
    pthread_mutex_lock(&lock);
    give_back();
    record(63, 64);
    give_back();
    pthread_mutex_unlock(&lock);
}

#include "pm.c"
#include "pc.c"
