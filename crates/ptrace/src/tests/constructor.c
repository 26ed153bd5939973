/* A library whose loading takes 3 s, all in waits. */
#include <time.h>
__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 300; i++) { struct timespec time = {0, 10000000}; nanosleep(&time, &time); }
}
