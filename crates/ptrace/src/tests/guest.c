/* A program that a library is loaded into. Its first argument says how it lives. It computes something, checks that nothing of it was
 * changed, and prints the result. */
#define _GNU_SOURCE
#include <alloca.h>
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

#ifdef __aarch64__
/* v0 to v31, x0 to x30, then condition flags, floating point's state and its control. */
enum { GENERAL = 64, FLAGS = GENERAL + 31, WORDS = FLAGS + 3 };
void every_register(uint64_t *in, uint64_t *out);
#define LOAD_OR_STORE(Q, X)                                                                                                        \
    Q " q0, q1, [x30]\n" Q " q2, q3, [x30, 32]\n" Q " q4, q5, [x30, 64]\n" Q " q6, q7, [x30, 96]\n"                            \
    Q " q8, q9, [x30, 128]\n" Q " q10, q11, [x30, 160]\n" Q " q12, q13, [x30, 192]\n" Q " q14, q15, [x30, 224]\n"              \
    Q " q16, q17, [x30, 256]\n" Q " q18, q19, [x30, 288]\n" Q " q20, q21, [x30, 320]\n" Q " q22, q23, [x30, 352]\n"            \
    Q " q24, q25, [x30, 384]\n" Q " q26, q27, [x30, 416]\n" Q " q28, q29, [x30, 448]\n" Q " q30, q31, [x30, 480]\n"            \
    "add x30, x30, 512\n" X " x0, x1, [x30]\n" X " x2, x3, [x30, 16]\n" X " x4, x5, [x30, 32]\n" X " x6, x7, [x30, 48]\n"     \
    X " x8, x9, [x30, 64]\n" X " x10, x11, [x30, 80]\n" X " x12, x13, [x30, 96]\n" X " x14, x15, [x30, 112]\n"                 \
    X " x16, x17, [x30, 128]\n" X " x18, x19, [x30, 144]\n" X " x20, x21, [x30, 160]\n" X " x22, x23, [x30, 176]\n"            \
    X " x24, x25, [x30, 192]\n" X " x26, x27, [x30, 208]\n" X " x28, x29, [x30, 224]\n"
__asm__(".globl every_register\nevery_register: stp x29, x30, [sp, -192]!\n"
        "stp x19, x20, [sp, 16]\nstp x21, x22, [sp, 32]\nstp x23, x24, [sp, 48]\nstp x25, x26, [sp, 64]\nstp x27, x28, [sp, 80]\n"
        "stp d8, d9, [sp, 96]\nstp d10, d11, [sp, 112]\nstp d12, d13, [sp, 128]\nstp d14, d15, [sp, 144]\n"
        "str x1, [sp, 160]\nmov x30, x0\n"
        "ldr x1, [x30, 8*95]\nmsr nzcv, x1\nldr x1, [x30, 8*96]\nmsr fpsr, x1\nldr x1, [x30, 8*97]\nmsr fpcr, x1\n"
        LOAD_OR_STORE("ldp", "ldp")
        "ldr x30, [x30, 240]\nsvc 0\n"
        "str x30, [sp, 168]\nldr x30, [sp, 160]\n"
        LOAD_OR_STORE("stp", "stp")
        "ldr x1, [sp, 168]\nstr x1, [x30, 240]\n"
        "mrs x1, nzcv\nstr x1, [x30, 248]\nmrs x1, fpsr\nstr x1, [x30, 256]\nmrs x1, fpcr\nstr x1, [x30, 264]\nmsr fpcr, xzr\n"
        "ldp d14, d15, [sp, 144]\nldp d12, d13, [sp, 128]\nldp d10, d11, [sp, 112]\nldp d8, d9, [sp, 96]\n"
        "ldp x27, x28, [sp, 80]\nldp x25, x26, [sp, 64]\nldp x23, x24, [sp, 48]\nldp x21, x22, [sp, 32]\nldp x19, x20, [sp, 16]\n"
        "ldp x29, x30, [sp], 192\nret\n");
#endif

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
    uint64_t in[WORDS] __attribute__((aligned(16))), out[WORDS] __attribute__((aligned(16)));
    for (int i = 0; i < WORDS; i++) in[i] = seed * 0x9e3779b97f4a7c15u + i * 0x123456789abcdefu;
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    /* ppoll(NULL, 0, &time, NULL, 0); then flags of the processor, of which only some bits can be set */
    uint64_t arguments[] = {0, 0, (uint64_t)&time, 0, 0};
    memcpy(in + GENERAL, arguments, sizeof arguments);
    in[GENERAL + 8] = SYS_ppoll;
    in[FLAGS] &= 0xf0000000u;
    in[FLAGS + 1] &= 0x9f;
    in[FLAGS + 2] = (seed & 3) << 24;
    memset(out, 0, sizeof out);
    errno = (int)(seed & 63);
    every_register(in, out);
    if (errno != (int)(seed & 63)) wrong("errno");
    if (out[GENERAL] != 0 && (int64_t)out[GENERAL] != -EINTR) wrong("result");
    for (int i = 0; i < WORDS; i++)
        if (in[i] != out[i] && i != GENERAL) { printf("WRONG register %d: %lx for %lx\n", i - GENERAL, out[i], in[i]); fflush(stdout); _exit(9); }
#endif
}

static uint64_t rounds(int count, int ms) {
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < count; i++) {
        all_registers(h, ms);
        h = mix(h, i);
    }
    /* on a busy machine whoever enters needs longer: it goes on until standard input is closed */
    for (struct pollfd input = {.fd = 0}; poll(&input, 1, 0) == 0;) all_registers(h, ms);
    return h;
}

static uint64_t spin(double length) {
    double end = seconds() + length;
    uint64_t h = 1;
    while (seconds() < end) for (int i = 0; i < 1000; i++) h = mix(h, i);
    return h;
}

/* Most programs have called more than what they sleep in: their stack reaches below it. */
static __attribute__((noinline)) void go_deeper(void) {
    volatile char room[8192];
    for (int i = 0; i < 8192; i++) room[i] = 1;
    (void)room[0];
}

static volatile int is_over;
static volatile long ticks;
static void tick(int signal) { (void)signal; errno = EIO; ticks++; volatile double x = ticks; x = x * 1.5; }

/* Where stacks have to be larger, all but 16 KiB of one is taken away. */
#ifdef __aarch64__
enum { ROOM = 16384, STACK = 131072 };
#else
enum { ROOM = 16384, STACK = ROOM };
#endif

static void *small(void *result) {
    pthread_attr_t attributes;
    void *bottom;
    size_t size;
    if (STACK > ROOM && !pthread_getattr_np(pthread_self(), &attributes) && !pthread_attr_getstack(&attributes, &bottom, &size))
        *(volatile char *)alloca((char *)__builtin_frame_address(0) - (char *)bottom - ROOM) = 0;
    *(uint64_t *)result = rounds(700, 1);
    is_over = 1;
    return NULL;
}

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
    for (long i = 0; i < 6400 / place->count; i++) {
        pthread_mutex_lock(&lock);
        while (turn % place->count != place->number) pthread_cond_wait(&change, &lock);
        in_turns = mix(in_turns, turn++);
        pthread_cond_broadcast(&change);
        pthread_mutex_unlock(&lock);
        if (i % 10 == 0) poll(NULL, 0, 1);
    }
    return NULL;
}

/* Whether the test has let go of the input, after so many milliseconds at most. */
static int is_let_go(int most) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, most) != 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    if (!strcmp(how, "poll")) {
        printf("%016lx\n", (unsigned long)rounds(argc > 2 ? atoi(argv[2]) : 700, 1));
        is_let_go(-1);
    }
    if (!strcmp(how, "sleep")) {
        double begun = seconds();
        struct timespec time = {2, 0};
        /* What calls that are over left on the stack looks like calls that run: none of it is near. */
        volatile char *empty = alloca(1 << 17);
        for (int i = 0; i < 1 << 17; i++) empty[i] = 0;
        go_deeper();
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
        double end = seconds() + 5;
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
        if (pthread_attr_setstacksize(&attributes, STACK)) wrong("stack size");
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
        /* until the test lets go of its input: a busy machine takes longer to come in */
        int bad = 0, end = 0;
        for (int i = 0; !end; i = (i + 1) % 100) {
            pid_t child = fork();
            if (child == 0) { char code[8]; snprintf(code, 8, "%d", i); execl(argv[0], argv[0], "code", code, NULL); _exit(99); }
            int status = 0;
            end = is_let_go(5);
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
        /* each turn wakes all of them: a slow machine has fewer */
        enum { MOST = 64 };
        int count = getenv("CUPTOP_TEST_THREADS") ? atoi(getenv("CUPTOP_TEST_THREADS")) : MOST;
        pthread_t threads[MOST];
        static struct place places[MOST];
        if (count < 1 || count > MOST) return 1;
        for (int i = 0; i < count; i++) { places[i] = (struct place){i, count}; pthread_create(&threads[i], NULL, take_turns, &places[i]); }
        for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
        printf("%016lx\n", (unsigned long)in_turns);
        is_let_go(-1);
    }
    if (!strcmp(how, "mapped")) { /* a file that looks like another loader */
        int file = open(argv[2], O_RDONLY);
        if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) wrong("mmap");
        puts("mapped");
        poll(NULL, 0, 2000);
    }
    return 0;
}
