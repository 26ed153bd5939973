/* A library whose loading takes 1.2 s, all in waits. */
#include <time.h>
__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 120; i++) { struct timespec time = {0, 10000000}; nanosleep(&time, &time); }
}
