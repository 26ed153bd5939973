"""Grinds sack after sack: three hands fill them in NumPy and put them on a belt, and the mill takes the next one from it."""
import queue
import threading

import numpy as np
import torch

from gauge import steps

GRAINS, WIDTH, STONES, HANDS = 32768, 4096, 10, 3
torch.manual_seed(0)
stones = [torch.randn(WIDTH, WIDTH, device="cuda").div_(WIDTH**0.5).bfloat16() for _ in range(STONES)]
spread = torch.randn(64, WIDTH, device="cuda").bfloat16() / 8
belt, over = queue.Queue(6), threading.Event()


def hand(number):
    rng = np.random.default_rng(number)
    while not over.is_set():
        sack = rng.integers(-128, 128, (GRAINS, 64), dtype=np.int8)
        np.maximum(sack, -100, out=sack)
        belt.put(torch.from_numpy(sack).pin_memory())


def grind(sack):
    x = sack.cuda(non_blocking=True).bfloat16() / 128 @ spread
    for stone in stones:
        x = torch.tanh(x @ stone)
    return x.mean()


threads = [threading.Thread(target=hand, args=(number,), name=f"hand-{number}", daemon=True) for number in range(HANDS)]
for thread in threads:
    thread.start()
with torch.inference_mode():
    for _ in steps(torch.cuda.synchronize, each=5):
        grind(belt.get())
over.set()
while any(thread.is_alive() for thread in threads):
    if not belt.empty():
        belt.get()
    threads[0].join(0.01)
