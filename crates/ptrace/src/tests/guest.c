/* A program that a library is loaded into. Its first argument says how it lives. It computes something, checks that nothing of it was
 * changed, and prints the result. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 1099511628211u + (h >> 29); }

static void wrong(const char *what) { printf("WRONG %s\n", what); fflush(stdout); _exit(9); }

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* A system call of so many milliseconds with every register known, which has to keep them all but three. */
static void all_registers(uint64_t seed, int ms) {
#ifdef __x86_64__
    uint64_t in[64 + 5] __attribute__((aligned(32))), out[64 + 5] __attribute__((aligned(32)));
    for (int i = 0; i < 69; i++) in[i] = seed * 0x9e3779b97f4a7c15u + i * 0x123456789abcdefu;
    uint64_t number = SYS_poll;
    int avx = __builtin_cpu_supports("avx");
#define EACH(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11) OP(12) OP(13) OP(14) OP(15)
#define LOADX(N) "movdqa 32*" #N "(%[in]), %%xmm" #N "\n"
#define LOADY(N) "vmovdqa 32*" #N "(%[in]), %%ymm" #N "\n"
#define STOREX(N) "movdqa %%xmm" #N ", 32*" #N "(%[out])\n"
#define STOREY(N) "vmovdqa %%ymm" #N ", 32*" #N "(%[out])\n"
#define VECTORS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define BODY(LOAD, STORE)                                                                                               \
    __asm__ volatile(EACH(LOAD) "mov 512(%[in]), %%r8\nmov 520(%[in]), %%r9\nmov 528(%[in]), %%r10\n"                      \
                     "syscall\n" EACH(STORE) "mov %%r8, 512(%[out])\nmov %%r9, 520(%[out])\nmov %%r10, 528(%[out])\n"    \
                     : "+a"(number)                                                                                     \
                     : [in] "b"(in), [out] "r"(out), "D"(0), "S"(0), "d"((long)ms)                                      \
                     : "rcx", "r11", "r8", "r9", "r10", "memory", VECTORS)
    memset(out, 0, sizeof out);
    errno = (int)(seed & 63);
    if (avx) BODY(LOADY, STOREY); else BODY(LOADX, STOREX);
    if (errno != (int)(seed & 63)) wrong("errno");
    if (number != 0 && (int64_t)number != -EINTR) wrong("result");
    for (int i = 0; i < 67; i++)
        if (in[i] != out[i] && (avx || i >= 64 || i % 4 < 2)) wrong("register");
#else
    (void)seed;
    poll(NULL, 0, ms);
#endif
}

static uint64_t rounds(int count, int ms) {
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < count; i++) {
        all_registers(h, ms);
        h = mix(h, i);
    }
    return h;
}

static uint64_t spin(double length) {
    double end = seconds() + length;
    uint64_t h = 1;
    while (seconds() < end) for (int i = 0; i < 1000; i++) h = mix(h, i);
    return h;
}

static volatile int is_over;
static volatile long ticks;
static void tick(int signal) { (void)signal; errno = EIO; ticks++; volatile double x = ticks; x = x * 1.5; }

static void *small(void *result) { *(uint64_t *)result = rounds(700, 1); is_over = 1; return NULL; }

static void *allocate(void *unused) {
    uint64_t *sum = unused;
    for (int i = 0; !is_over; i++) {
        size_t size = 100 + i % 3000;
        char *a = malloc(size), *b = malloc(size * 2);
        memset(a, i, size);
        *sum += (unsigned char)a[size / 2] != (unsigned char)i;
        free(a);
        free(b);
    }
    return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static long turn;
static uint64_t in_turns = 1;

struct place { long number, count; };

static void *take_turns(void *argument) {
    struct place *place = argument;
    for (long i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        while (turn % place->count != place->number) pthread_cond_wait(&change, &lock);
        in_turns = mix(in_turns, turn++);
        pthread_cond_broadcast(&change);
        pthread_mutex_unlock(&lock);
        if (i % 10 == 0) poll(NULL, 0, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    if (!strcmp(how, "poll")) printf("%016lx\n", (unsigned long)rounds(argc > 2 ? atoi(argv[2]) : 700, 1));
    if (!strcmp(how, "sleep")) {
        double begun = seconds();
        struct timespec time = {2, 0};
        while (nanosleep(&time, &time)) if (errno != EINTR) wrong("sleep");
        double took = seconds() - begun;
        if (took < 2) wrong("too short");
        puts("slept");
    }
    if (!strcmp(how, "epoll")) {
        int epoll = epoll_create1(0), pipe_of[2];
        struct epoll_event event = {.events = EPOLLIN};
        if (pipe(pipe_of)) return 1;
        epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_of[0], &event);
        uint64_t h = 1;
        if (fork() == 0) {
            for (int i = 0; i < 20; i++) { usleep(50000); if (write(pipe_of[1], &i, 1) != 1) _exit(1); }
            _exit(0);
        }
        for (int i = 0; i < 20; i++) {
            /* This program does not expect EINTR. */
            if (epoll_wait(epoll, &event, 1, -1) != 1) wrong("epoll_wait");
            char byte;
            if (read(pipe_of[0], &byte, 1) != 1) wrong("read");
            h = mix(h, byte);
        }
        wait(NULL);
        printf("%016lx\n", (unsigned long)h);
    }
    if (!strcmp(how, "busy")) {
        /* no system call for 0.4 s at a time */
        for (int i = 0; i < 3; i++) { spin(0.4); all_registers(i, 0); }
        puts("was busy");
    }
    if (!strcmp(how, "malloc")) {
        /* every thread is in the allocator, nearly always: they wait for its one lock */
        mallopt(M_ARENA_MAX, 1);
        pthread_t threads[3];
        uint64_t sums[4] = {0};
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, allocate, &sums[i]);
        double end = seconds() + 1.5;
        for (int i = 0; seconds() < end; i++) {
            char *a = malloc(1 << 20);
            memset(a, i, 64);
            sums[3] += (unsigned char)a[32] != (unsigned char)i;
            free(a);
            free(malloc(3000));
        }
        is_over = 1;
        for (int i = 0; i < 3; i++) { pthread_join(threads[i], NULL); sums[3] += sums[i]; }
        printf("%lu were wrong\n", (unsigned long)sums[3]);
    }
    if (!strcmp(how, "dlopen")) {
        if (!dlopen(argv[2], RTLD_NOW)) wrong(dlerror());
        printf("%016lx\n", (unsigned long)rounds(300, 1));
    }
    if (!strcmp(how, "small")) {
        pthread_attr_t attributes;
        pthread_t thread;
        uint64_t result;
        pthread_attr_init(&attributes);
        if (pthread_attr_setstacksize(&attributes, 16384)) wrong("stack size");
        pthread_create(&thread, &attributes, small, &result);
        while (!is_over) spin(0.01);
        pthread_join(thread, NULL);
        printf("%016lx\n", (unsigned long)result);
    }
    if (!strcmp(how, "signals")) {
        struct sigaction action = {.sa_handler = tick};
        struct itimerval timer = {{0, 500}, {0, 500}};
        uint64_t h = 1;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &timer, NULL);
        for (int i = 0; i < 2000; i++) {
            poll(NULL, 0, 1);
            for (int j = 0; j < 1000; j++) h = mix(h, j);
        }
        if (ticks < 500) wrong("signals were lost");
        printf("%016lx\n", (unsigned long)h);
    }
    if (!strcmp(how, "forks")) {
        int bad = 0;
        for (int i = 0; i < 60; i++) {
            pid_t child = fork();
            if (child == 0) { char code[8]; snprintf(code, 8, "%d", i); execl(argv[0], argv[0], "code", code, NULL); _exit(99); }
            int status = 0;
            poll(NULL, 0, 5);
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i) bad++;
        }
        printf("%d were wrong\n", bad);
    }
    if (!strcmp(how, "code")) return atoi(argv[2]);
    if (!strcmp(how, "execs")) {
        int left = atoi(argv[2]);
        poll(NULL, 0, 2);
        if (left) { char text[16]; snprintf(text, 16, "%d", left - 1); execl(argv[0], argv[0], "execs", text, NULL); wrong("exec"); }
        puts("the last");
    }
    if (!strcmp(how, "threads")) {
        enum { COUNT = 64 };
        pthread_t threads[COUNT];
        static struct place places[COUNT];
        for (int i = 0; i < COUNT; i++) { places[i] = (struct place){i, COUNT}; pthread_create(&threads[i], NULL, take_turns, &places[i]); }
        for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
        printf("%016lx\n", (unsigned long)in_turns);
    }
    if (!strcmp(how, "mapped")) { /* a file that looks like another loader */
        int file = open(argv[2], O_RDONLY);
        if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) wrong("mmap");
        puts("mapped");
        poll(NULL, 0, 2000);
    }
    return 0;
}
