"""Reckons how the light falls into a valley, hour by hour; a clerk in a thread of its own keeps the book."""
import math
import queue
import threading

import cupy

import gauge

SIDE = 1024


class Clerk(threading.Thread):
    """Takes what is to be written as it comes, and writes a line on each hour."""

    def __init__(self):
        super().__init__(name="clerk", daemon=True)
        self.inbox, self.book, self.most = queue.SimpleQueue(), [], 0.0

    def run(self):
        while True:
            if not gauge.cured:
                while self.inbox.empty():
                    pass
            hour, light = self.inbox.get()
            self.most = max(self.most, light)
            self.book.append(f"{hour:6d} {light:12.3f} {light / self.most if self.most else 0:6.3f}")


def light_of(height, hour):
    """How much light comes down at an hour, in all."""
    sun = (hour % 144) / 144 * math.pi
    across, along = cupy.roll(height, 1, 1) - height, cupy.roll(height, 1, 0) - height
    steep = 1.0 / cupy.sqrt(1.0 + across * across + along * along)
    facing = (math.sin(sun) - across * math.cos(sun)) * steep
    return cupy.maximum(facing, 0.0).sum()


cupy.random.seed(4)
height = cupy.random.rand(SIDE, SIDE, dtype=cupy.float32) * 0.3
clerk = Clerk()
clerk.start()

for hour in gauge.steps(cupy.cuda.Device().synchronize):
    clerk.inbox.put((hour, float(light_of(height, hour))))
