/* A driver without a GPU, for tests of the runner: device memory is host memory, copies happen at once, every call
 * is written to a log, and what a test wants to go wrong goes wrong.
 *
 * A module image is text: a line "KERNEL name size size ..." for each kernel, with its parameters' sizes. Two names
 * do something when launched: `add_one(float* x, int n)` adds, `out_of_bounds` makes every later call fail. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int Code;
typedef unsigned long long Address;
enum { SUCCESS = 0, INVALID_VALUE = 1, NO_MEMORY = 2, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

/* What a test sets. */
static int devices = 1;
static size_t memory = (size_t)1 << 30;
static int fail_peers = 0;

static char* log_text;
static size_t log_length, log_room;
static size_t used;
static int live;          /* everything that was made and not given back */
static Code sticky;       /* what every call returns once a kernel has misbehaved */
static long context_now;  /* the current context's number */
static long next_id = 1;

static void say(const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[length++] = '\n';
    if (log_length + length + 1 > log_room) {
        log_room = (log_room + length) * 2 + 4096;
        log_text = realloc(log_text, log_room);
    }
    memcpy(log_text + log_length, line, length);
    log_length += length;
    log_text[log_length] = 0;
}

const char* fake_log(void) { return log_text ? log_text : ""; }
int fake_live(void) { return live; }
void fake_set_devices(int count) { devices = count; }
void fake_set_memory(size_t bytes) { memory = bytes; }
void fake_set_apart(void) { fail_peers = 1; }

struct handle { long id; int capturing; long context; };
struct allocation { struct allocation* next; char* at; size_t bytes; };
static struct allocation* allocations;

struct kernel { struct kernel* next; char name[64]; int count; size_t sizes[16]; };
struct module { struct kernel* kernels; };

static struct handle* make(void) {
    struct handle* made = calloc(1, sizeof *made);
    made->id = next_id++;
    made->context = context_now;
    live++;
    return made;
}

static void end(void* handle) { free(handle); live--; }
static long id(struct handle* stream) { return stream ? stream->id : 0; }

static Code allocate(void** at, size_t bytes) {
    if (sticky) return sticky;
    if (used + bytes > memory) return NO_MEMORY;
    struct allocation* made = malloc(sizeof *made);
    /* Not zeros: whoever relies on them is wrong. */
    made->at = malloc(bytes ? bytes : 1);
    memset(made->at, 0xAA, bytes);
    made->bytes = bytes;
    made->next = allocations;
    allocations = made;
    used += bytes;
    live++;
    *at = made->at;
    return SUCCESS;
}

static Code release(void* at) {
    if (!at) return SUCCESS;
    for (struct allocation** it = &allocations; *it; it = &(*it)->next) {
        if ((*it)->at == at) {
            struct allocation* gone = *it;
            *it = gone->next;
            used -= gone->bytes;
            free(gone->at);
            free(gone);
            live--;
            return sticky;
        }
    }
    return INVALID_VALUE;
}

/* Whether [at, at + bytes) lies in one allocation. */
static int owned(Address at, size_t bytes) {
    for (struct allocation* it = allocations; it; it = it->next) {
        Address start = (Address)it->at;
        if (at >= start && at + bytes <= start + it->bytes) return 1;
    }
    return 0;
}

Code cuInit(unsigned flags) { return flags ? INVALID_VALUE : SUCCESS; }
Code cuDriverGetVersion(int* version) { *version = 13000; return SUCCESS; }
Code cuGetErrorName(Code code, const char** text) {
    *text = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OTHER";
    return SUCCESS;
}
Code cuGetErrorString(Code code, const char** text) {
    *text = code == NO_MEMORY ? "out of memory"
          : code == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
          : code == INVALID_VALUE ? "invalid argument" : "other error";
    return SUCCESS;
}
Code cuDeviceGetCount(int* count) { *count = devices; return SUCCESS; }
Code cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal < devices ? SUCCESS : 101; }
Code cuDeviceGetName(char* name, int length, int device) { (void)device; snprintf(name, length, "Fake GPU"); return SUCCESS; }
Code cuDeviceGetUuid_v2(char* uuid, int device) { for (int i = 0; i < 16; i++) uuid[i] = 1 + i + device; return SUCCESS; }
Code cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    switch (attribute) {
        case 75: *value = 9; break;  /* compute capability, major */
        case 76: *value = 0; break;
        case 115: *value = 1; break; /* memory pools */
        case 16: *value = 132; break;
        default: *value = 0;
    }
    return SUCCESS;
}
Code cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = memory; return SUCCESS; }
Code cuDeviceGetPCIBusId(char* text, int length, int device) { snprintf(text, length, "0000:0%d:00.0", device); return SUCCESS; }
Code cuDeviceCanAccessPeer(int* can, int a, int b) { (void)a; (void)b; *can = !fail_peers; return SUCCESS; }

static struct handle primaries[8];
Code cuDevicePrimaryCtxRetain(struct handle** context, int device) {
    say("retain %d", device);
    primaries[device].id = 1000 + device;
    *context = &primaries[device];
    live++;
    return SUCCESS;
}
Code cuDevicePrimaryCtxRelease_v2(int device) { say("release %d", device); live--; return SUCCESS; }
Code cuCtxCreate_v2(struct handle** context, unsigned flags, int device) {
    (void)flags;
    *context = make();
    say("context on %d", device);
    return SUCCESS;
}
Code cuCtxDestroy_v2(struct handle* context) { say("context gone"); end(context); return SUCCESS; }
Code cuCtxSetCurrent(struct handle* context) {
    if (context_now != id(context) && context && context->id >= 1000) say("enter %ld", context->id - 1000);
    context_now = id(context);
    return SUCCESS;
}
Code cuCtxSynchronize(void) { say("sync"); return sticky; }
Code cuCtxEnablePeerAccess(struct handle* context, unsigned flags) { (void)flags; say("peer %ld", context->id - 1000); return SUCCESS; }

Code cuStreamCreateWithPriority(struct handle** stream, unsigned flags, int priority) {
    *stream = make();
    say("stream %ld flags %u priority %d", (*stream)->id, flags, priority);
    return SUCCESS;
}
Code cuStreamDestroy_v2(struct handle* stream) { end(stream); return sticky; }
Code cuStreamSynchronize(struct handle* stream) { say("sync stream %ld", id(stream)); return sticky; }
Code cuStreamWaitEvent(struct handle* stream, struct handle* event, unsigned flags) {
    say("stream %ld waits for event %ld", id(stream), id(event));
    if (event->capturing) stream->capturing = 1;
    return flags ? INVALID_VALUE : sticky;
}
Code cuEventCreate(struct handle** event, unsigned flags) { *event = make(); return flags == 2 ? SUCCESS : INVALID_VALUE; }
Code cuEventDestroy_v2(struct handle* event) { end(event); return sticky; }
Code cuEventRecord(struct handle* event, struct handle* stream) {
    say("event %ld on stream %ld", id(event), id(stream));
    if (event->context != context_now) return INVALID_HANDLE;
    event->capturing = stream && stream->capturing;
    return sticky;
}
Code cuEventSynchronize(struct handle* event) { say("sync event %ld", id(event)); return sticky; }
Code cuEventElapsedTime(float* ms, struct handle* a, struct handle* b) { (void)a; (void)b; *ms = 1; return sticky; }

Code cuMemGetInfo_v2(size_t* free_bytes, size_t* total) { *free_bytes = memory - used; *total = memory; return SUCCESS; }
Code cuMemAlloc_v2(Address* at, size_t bytes) { say("alloc %zu", bytes); return allocate((void**)at, bytes); }
Code cuMemFree_v2(Address at) { say("free"); return release((void*)at); }
Code cuMemAllocManaged(Address* at, size_t bytes, unsigned flags) { say("managed %zu", bytes); return flags == 1 ? allocate((void**)at, bytes) : INVALID_VALUE; }
Code cuMemHostAlloc(void** at, size_t bytes, unsigned flags) { say("pinned %zu", bytes); return flags == 1 ? allocate(at, bytes) : INVALID_VALUE; }
Code cuMemFreeHost(void* at) { return release(at); }
Code cuMemAllocAsync(Address* at, size_t bytes, struct handle* stream) { say("alloc %zu on stream %ld", bytes, id(stream)); return allocate((void**)at, bytes); }
Code cuMemFreeAsync(Address at, struct handle* stream) { say("free on stream %ld", id(stream)); return release((void*)at); }
Code cuDeviceGetDefaultMemPool(void** pool, int device) { (void)device; *pool = &primaries; return SUCCESS; }
Code cuMemPoolSetAttribute(void* pool, unsigned attribute, void* value) {
    (void)pool;
    say("pool keeps %s", attribute == 4 && *(Address*)value == ~0ull ? "all" : "something");
    return SUCCESS;
}
static Code copy(const char* what, Address to, Address from, size_t bytes, struct handle* stream, int is_async, int check_to, int check_from) {
    int captured = stream && stream->capturing;
    if ((check_to && !owned(to, bytes)) || (check_from && !owned(from, bytes))) return INVALID_VALUE;
    if (!captured) memcpy((void*)to, (void*)from, bytes);
    float first = 0;
    if (bytes >= sizeof first) memcpy(&first, (void*)from, sizeof first);
    say("%s%s %zu%s stream %ld first %g", captured ? "captured " : "", what, bytes, is_async ? " async" : "", id(stream), first);
    return sticky;
}
Code cuMemcpyHtoD_v2(Address to, const void* from, size_t n) { return copy("h2d", to, (Address)from, n, 0, 0, 1, 0); }
Code cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, struct handle* s) { return copy("h2d", to, (Address)from, n, s, 1, 1, 0); }
Code cuMemcpyDtoH_v2(void* to, Address from, size_t n) { return copy("d2h", (Address)to, from, n, 0, 0, 0, 1); }
Code cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, struct handle* s) { return copy("d2h", (Address)to, from, n, s, 1, 0, 1); }
Code cuMemcpyDtoD_v2(Address to, Address from, size_t n) { return copy("d2d", to, from, n, 0, 0, 1, 1); }
Code cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, struct handle* s) { return copy("d2d", to, from, n, s, 1, 1, 1); }
Code cuMemcpyPeer(Address to, struct handle* tc, Address from, struct handle* fc, size_t n) {
    say("from %ld to %ld", fc->id - 1000, tc->id - 1000);
    return copy("p2p", to, from, n, 0, 0, 1, 1);
}
Code cuMemcpyPeerAsync(Address to, struct handle* tc, Address from, struct handle* fc, size_t n, struct handle* s) {
    say("from %ld to %ld", fc->id - 1000, tc->id - 1000);
    return copy("p2p", to, from, n, s, 1, 1, 1);
}
Code cuMemsetD8Async(Address to, unsigned char value, size_t bytes, struct handle* stream) {
    if (!owned(to, bytes)) return INVALID_VALUE;
    say("memset %zu to %d on stream %ld", bytes, value, id(stream));
    memset((void*)to, value, bytes);
    return sticky;
}

Code cuModuleLoadData(struct module** module, const void* image) {
    struct module* made = calloc(1, sizeof *made);
    const char* line = image;
    while (line && !strncmp(line, "KERNEL ", 7)) {
        struct kernel* k = calloc(1, sizeof *k);
        int read = 0;
        sscanf(line + 7, "%63s%n", k->name, &read);
        const char* rest = line + 7 + read;
        size_t size;
        while (sscanf(rest, " %zu%n", &size, &read) == 1) {
            k->sizes[k->count++] = size;
            rest += read;
            if (*rest == '\n') break;
        }
        k->next = made->kernels;
        made->kernels = k;
        line = strchr(line, '\n');
        if (line) line++;
    }
    say("module");
    live++;
    *module = made;
    return made->kernels ? SUCCESS : 200;
}
Code cuModuleUnload(struct module* module) { end(module); return sticky; }
Code cuModuleGetFunction(struct kernel** function, struct module* module, const char* name) {
    for (struct kernel* k = module->kernels; k; k = k->next)
        if (!strcmp(k->name, name)) { *function = k; return SUCCESS; }
    return NOT_FOUND;
}
Code cuFuncLoad(struct kernel* k) { (void)k; return SUCCESS; }
Code cuFuncGetAttribute(int* value, int attribute, struct kernel* k) { (void)k; *value = attribute == 0 ? 1024 : 0; return SUCCESS; }
Code cuFuncSetAttribute(struct kernel* k, int attribute, int value) { say("attribute %d of %s is %d", attribute, k->name, value); return SUCCESS; }
Code cuFuncGetParamInfo(struct kernel* k, size_t index, size_t* offset, size_t* size) {
    if ((long)index >= k->count) return INVALID_VALUE;
    *offset = 0;
    *size = k->sizes[index];
    return SUCCESS;
}
Code cuLaunchKernel(struct kernel* k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                    unsigned shared, struct handle* stream, void** params, void** extra) {
    (void)extra;
    int captured = stream && stream->capturing;
    say("%slaunch %s %ux%ux%u %ux%ux%u shared %u stream %ld", captured ? "captured " : "", k->name, gx, gy, gz, bx, by, bz, shared, id(stream));
    if (sticky) return sticky;
    if (stream && stream->context != context_now) return INVALID_HANDLE;
    if (captured) return SUCCESS;
    if (!strcmp(k->name, "add_one")) {
        Address x = *(Address*)params[0];
        int n = *(int*)params[1];
        if (!owned(x, n * sizeof(float))) { sticky = ILLEGAL_ADDRESS; return SUCCESS; }
        for (int i = 0; i < n; i++) ((float*)x)[i] += 1;
    } else if (!strcmp(k->name, "out_of_bounds")) {
        sticky = ILLEGAL_ADDRESS;
    }
    return SUCCESS;
}

Code cuStreamBeginCapture_v2(struct handle* stream, int mode) {
    (void)mode;
    say("capture begins on stream %ld", id(stream));
    if (!stream) return 900;
    stream->capturing = 1;
    return SUCCESS;
}
Code cuStreamEndCapture(struct handle* stream, struct handle** graph) {
    say("capture ends on stream %ld", id(stream));
    stream->capturing = 0;
    *graph = make();
    return SUCCESS;
}
Code cuGraphInstantiateWithFlags(struct handle** executable, struct handle* graph, unsigned long long flags) {
    (void)graph; (void)flags;
    *executable = make();
    return SUCCESS;
}
Code cuGraphLaunch(struct handle* graph, struct handle* stream) {
    if (!graph) return INVALID_HANDLE;
    say("graph on stream %ld", id(stream));
    return sticky;
}
Code cuGraphExecDestroy(struct handle* graph) { end(graph); return SUCCESS; }
Code cuGraphDestroy(struct handle* graph) { end(graph); return SUCCESS; }
