"""Four threads weave a cloth each: many small operations on a stream of one's own."""
import threading

import cupy

from gauge import cured, passes

done, over = [0] * 4, threading.Event()


def rows(x, y):
    for k in range(20):
        cupy.multiply(x, 0.99, out=y)
        cupy.add(y, 0.01 * k, out=x)


def weave(n):
    x, y = cupy.zeros(4096, cupy.float32), cupy.zeros(4096, cupy.float32)
    stream = looms[n]
    with stream:
        rows(x, y)
        stream.synchronize()
        if cured:
            with capturing:
                stream.begin_capture()
                rows(x, y)
                whole = stream.end_capture()
        while not over.is_set():
            whole.launch(stream) if cured else rows(x, y)
            stream.synchronize()
            done[n] += 1


capturing = threading.Lock()
looms = [cupy.cuda.Stream(non_blocking=True) for _ in done]
threads = [threading.Thread(target=weave, args=(n,), name=f"weaver-{n}") for n in range(4)]
for thread in threads:
    thread.start()
while min(done) < 20:
    over.wait(0.1)
passes(lambda: sum(done))
over.set()
for thread in threads:
    thread.join()
