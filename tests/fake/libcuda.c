/* A CUDA driver that does one thing as the real one does: load what is to be injected. */
#include <dlfcn.h>
#include <stdlib.h>

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
