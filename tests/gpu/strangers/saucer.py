"""Iterates a large product of matrices; a thread of its own looks at the memory every few milliseconds, for a chart."""
import collections
import threading
import time

import torch

from gauge import steps

torch.manual_seed(0)
N = 8192
chart, over = collections.deque(maxlen=1000), threading.Event()
a = torch.randn(N, N, device="cuda", dtype=torch.bfloat16) / N**0.5
x = torch.randn(N, N, device="cuda", dtype=torch.bfloat16)


def watch():
    while not over.is_set():
        chart.append((time.monotonic(), torch.cuda.memory_allocated()))
        time.sleep(0.004)


watcher = threading.Thread(target=watch, name="watcher", daemon=True)
watcher.start()
with torch.no_grad():
    for _ in steps(torch.cuda.synchronize, each=4):
        for _ in range(6):
            x = torch.nn.functional.layer_norm(a @ x, (N,))
over.set()
watcher.join()
