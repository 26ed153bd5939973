/* A CUDA driver that does one thing as the real one does: load what is to be injected. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int done;

int cuInit(unsigned flags) {
    (void)flags;
    if (!done) {
        done = 1;
        const char *path = getenv("CUDA_INJECTION64_PATH");
        void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        int (*initialise)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
        if (initialise) initialise();
    }
    return getenv("FAKE_CUINIT") ? atoi(getenv("FAKE_CUINIT")) : 0;
}

int cuDeviceGetCount(int *count) {
    *count = 1;
    return done ? 0 : 3;
}

int cuDriverGetVersion(int *version) {
    *version = getenv("FAKE_DRIVER") ? atoi(getenv("FAKE_DRIVER")) : 13000;
    return 0;
}

/* The primary context of the one device is there once CUDA is initialised. */
/* A GPU is as good as who started the program. */
int cuDeviceGetPCIBusId(char *text, int bytes, int device) { snprintf(text, bytes, "fake:%d:%d", (int)getppid(), device); return 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { (void)device; *flags = 0; *active = done; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &done; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxPushCurrent_v2(void *context) { return context == &done ? 0 : 201; }
int cuCtxPopCurrent_v2(void **context) { *context = &done; return 0; }
