/* A "CUDA program". Its first argument says how it lives and ends, the second how many launches it makes. */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*launch)(uint32_t, uint64_t);
static void (*drop)(uint32_t), (*timeless)(uint32_t), (*graphs)(uint32_t);
static void (*range)(uint32_t, const char *), (*wait_for)(uint32_t);
static void *(*nvtx)(void);
static void (*everything)(void), (*rejects)(void), (*unknown)(void);

static int initialise(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int code = init(0);
    const char *path = getenv("CUPTOP_CUPTI");
    void *cupti = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (cupti) {
        launch = (void (*)(uint32_t, uint64_t))dlsym(cupti, "fake_launch");
        drop = (void (*)(uint32_t))dlsym(cupti, "fake_drop");
        timeless = (void (*)(uint32_t))dlsym(cupti, "fake_timeless");
        graphs = (void (*)(uint32_t))dlsym(cupti, "fake_graphs");
        range = (void (*)(uint32_t, const char *))dlsym(cupti, "fake_range");
        wait_for = (void (*)(uint32_t))dlsym(cupti, "fake_wait");
        nvtx = (void *(*)(void))dlsym(cupti, "fake_nvtx");
        everything = (void (*)(void))dlsym(cupti, "fake_everything");
        rejects = (void (*)(void))dlsym(cupti, "fake_rejects");
        unknown = (void (*)(void))dlsym(cupti, "fake_unknown");
    }
    return code;
}

static void launches(int from, int count) {
    for (int i = 0; launch && i < count; i++) launch(from + i, 1000 + i);
}

/* Waits so many milliseconds, or without end if that is negative; whether stdin was closed. */
static int await_close(int milliseconds) {
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&input, 1, milliseconds) > 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(how, "no-cuda")) return 0;
    if (!strcmp(how, "lines")) { puts("to stdout"); fputs("to stderr\n", stderr); return 0; }
    if (!strcmp(how, "sleep")) { sleep(60); return 0; }
    if (!strcmp(how, "fork-first")) {
        /* parent and child use CUDA, each for itself */
        pid_t child = fork();
        if (initialise()) return 1;
        launches(1, child ? count : 2 * count);
        if (child) waitpid(child, NULL, 0);
        return 0;
    }
    if (!strncmp(how, "late", 4)) {
        /* Nobody injected anything. It brings its libcupti along, as PyTorch does, says when it began, launches a number of times or,
         * without one, until its stdin is closed, and says how often that was and what it computed meanwhile. "late-cuda" does not use
         * CUDA in its first second or, without a number, as long as its stdin is open; "late-fork" has children meanwhile. */
        if (!dlopen(getenv("CUPTOP_CUPTI"), RTLD_NOW)) return 3;
        int until_closed = count == 0, waits = !strcmp(how, "late-cuda"), done = 0;
        if (waits) {
            puts("running");
            fflush(stdout);
            if (until_closed) await_close(-1);
            else for (int i = 0; i < 100; i++) usleep(10000);
        }
        if (initialise()) return 1;
        if (!waits) { puts("running"); fflush(stdout); }
        uint64_t sum = 0;
        while (until_closed ? !await_close(1) : done < count) {
            launches(++done, 1);
            if (!until_closed) usleep(1000);
            for (int j = 0; j < 1000; j++) sum = sum * 31 + (done ^ j);
            if (!strcmp(how, "late-fork") && done % 100 == 0) {
                pid_t child = fork();
                if (child == 0) exit(7);
                int status;
                if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 4;
            }
        }
        printf("%d %016lx\n", done, (unsigned long)sum);
        return 0;
    }
    if (!strcmp(how, "nvtx")) {
        /* what the NVTX headers do at their first call, here before CUDA is used */
        int token = 0;
        void *library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
        int (*inject)(void *) = library ? (int (*)(void *))dlsym(library, "InitializeInjectionNvtx2") : NULL;
        if (!inject || inject(&token) != 1) return 2;
        if (initialise()) return 1;
        launches(1, count);
        return nvtx && nvtx() == &token ? 0 : 3;
    }
    if (initialise()) return 1;
    if (!strcmp(how, "graph")) {
        for (int i = 0; timeless && i < count; i++) timeless(i + 1);
        return 0;
    }
    if (!strcmp(how, "graphs")) {
        if (graphs) graphs(count);
        return 0;
    }
    if (!strcmp(how, "everything")) {
        if (everything) { everything(); rejects(); unknown(); drop(42); }
        return 0;
    }
    if (!strcmp(how, "slowly")) {
        for (int i = 1; i <= count; i++) { launches(i, 1); usleep(10000); }
        return 0;
    }
    if (!strcmp(how, "waits")) {
        for (int i = 1; wait_for && i <= count; i++) { launches(i, 1); wait_for(i); usleep(5000); }
        return 0;
    }
    if (!strcmp(how, "ranges")) {
        /* rounds of 300 ms outside a range, launches of even number, and 300 ms inside one, of odd number */
        for (int i = 0; range && i < count; i++) {
            for (int j = 0; j < 30; j++) { launches(2 * (i * 30 + j + 1), 1); usleep(10000); }
            range(i + 1, "step");
            for (int j = 0; j < 30; j++) { launches(2 * (i * 30 + j) + 1, 1); usleep(10000); }
            range(i + 1, NULL);
        }
        return 0;
    }
    if (!strcmp(how, "device")) {
        /* a device that is described, and launches on it; its process is listed by the fake of NVML */
        const char *path = getenv("FAKE_NVML_OWN");
        FILE *file = path ? fopen(path, "w") : NULL;
        if (file) { fprintf(file, "%d", getpid()); fclose(file); }
        if (everything) everything();
        for (int i = 1; i <= count; i++) { launches(i, 1); usleep(10000); }
        return 0;
    }
    if (!strcmp(how, "soak")) {
        /* so many launches at once before (the fifth word), then rounds of so many, 10 ms apart, for so many seconds */
        long rounds = argc > 3 ? atol(argv[3]) * 100 : 100;
        long before = argc > 4 ? atol(argv[4]) : 0;
        launches(1, before);
        for (long i = 0; i < rounds; i++) { launches(1 + before + i * count, count); usleep(10000); }
        return 0;
    }
    launches(1, count);
    if (!strcmp(how, "return")) return 0;
    if (!strcmp(how, "fail")) return 7;
    if (!strcmp(how, "fork")) {
        /* the child of a process that uses CUDA cannot, and ends like anybody else */
        pid_t child = fork();
        if (child == 0) exit(0);
        int status;
        waitpid(child, &status, 0);
        launches(count + 1, count);
        return status;
    }
    /* The others lose what is not flushed: let it be flushed, then make some more. */
    usleep(300000);
    if (!strcmp(how, "exec")) {
        execl(argv[0], argv[0], "return", argv[2], NULL);
        return 9;
    }
    if (!strcmp(how, "wait")) return 0;
    if (!strcmp(how, "_exit")) _exit(0);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    return 8;
}
