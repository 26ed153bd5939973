/* The library that tests load: it does what a call may do to a thread, says so, and keeps nothing. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#include <sys/socket.h>
#include <unistd.h>

void *guest_area;
static int calls;

static void use_stack(int depth) {
    volatile char room[4096];
    memset((char *)room, depth, sizeof room);
    if (depth) use_stack(depth - 1);
}

int guest_entry(int socket, int passed, int library, void *area) {
    char text[64], byte = 0;
    guest_area = area;
    errno = 77;
    free(malloc(100000));
    use_stack(40);
    double sum = 0;
    for (int i = 1; i < 1000; i++) sum += 1.0 / i;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        __asm__ volatile("vpcmpeqd %%ymm0,%%ymm0,%%ymm0; vmovdqa %%ymm0,%%ymm1; vmovdqa %%ymm0,%%ymm7; vmovdqa %%ymm0,%%ymm15" ::: "xmm0", "xmm1", "xmm7", "xmm15");
#else
    __asm__ volatile("movi v0.16b, 255; movi v7.16b, 255; movi v8.16b, 255; movi v31.16b, 255; msr fpsr, %0" ::"r"(0x1fL) : "v0", "v7", "v8", "v31");
    /* the longer vectors, where there are any */
    if (getauxval(AT_HWCAP) & HWCAP_SVE)
        __asm__ volatile(".arch_extension sve\nptrue p0.b\nmov z1.b, p0/z, -1\nmov z30.b, p0/z, -1" ::: "v1", "v30");
#endif
    if (pread(passed, &byte, 1, 0) < 0) byte = '?';
    int length = snprintf(text, sizeof text, "call %d, passed %c, library %d, sum %.0f", ++calls, byte, library >= 0, sum);
    send(socket, text, length, MSG_NOSIGNAL);
    close(socket);
    close(passed);
    if (library >= 0) close(library);
    return 1000 + calls;
}
