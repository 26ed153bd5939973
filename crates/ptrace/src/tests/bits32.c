/* A program without a C library, for 32 bits: waits, and ends. */
void _start(void) {
    int fds[2] = {0, 0}, result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(168), "b"(fds), "c"(0), "d"(2000) : "memory");
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(1), "b"(0));
}
