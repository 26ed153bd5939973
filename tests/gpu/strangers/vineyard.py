"""Counts what the probes of a vineyard have measured; their records come zipped, and readers unpack them."""
import queue
import threading
import zlib

import cupy
import numpy

import gauge

READERS, RECORDS, VALUES, LEVELS = 8, 12, 1 << 21, 64


def pack(number):
    rng = numpy.random.default_rng(number)
    return zlib.compress(rng.integers(0, LEVELS, VALUES, dtype=numpy.int32).tobytes(), 1)


class Book:
    """The records, one after another, for any number of readers."""

    def __init__(self):
        self.lock, self.page = threading.Lock(), 0
        self.records = [pack(number) for number in range(RECORDS)]

    def next(self):
        with self.lock:
            record = self.records[self.page % RECORDS]
            self.page += 1
            if not gauge.cured:
                return zlib.decompress(record, bufsize=4 * VALUES)
        return zlib.decompress(record, bufsize=4 * VALUES)


def reader():
    while not over.is_set():
        desk.put(numpy.frombuffer(book.next(), numpy.int32))


def count():
    values = cupy.asarray(desk.get())
    warm = values.astype(cupy.float32) / LEVELS
    sums[0] += warm.sum()
    sums[1] += (warm * warm).sum()


book, desk, over = Book(), queue.Queue(2 * READERS), threading.Event()
sums = cupy.zeros(2, cupy.float32)
readers = [threading.Thread(target=reader, name=f"reader-{n}", daemon=True) for n in range(READERS)]
for thread in readers:
    thread.start()
for _ in gauge.steps(cupy.cuda.Device().synchronize, each=8, warm=16):
    count()
over.set()
while any(thread.is_alive() for thread in readers):
    try:
        desk.get(timeout=0.01)
    except queue.Empty:
        pass
