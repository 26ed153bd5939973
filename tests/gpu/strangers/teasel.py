"""Learns the voices of birds, and keeps what it has learnt in a file as it goes."""
import os
import queue
import tempfile
import threading

import torch
import torch.nn.functional as F
from torch import nn

from gauge import steps

CALLS, WIDTH, DEPTH, EVERY = 16384, 2048, 12, 8
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widen, self.narrow = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.widen(self.norm(x))))


with torch.device("cuda"):
    voices = nn.Sequential(*(Layer() for _ in range(DEPTH))).bfloat16()
    calls, birds = torch.randn(2, 4, CALLS, WIDTH, dtype=torch.bfloat16)
learnt = [p.detach() for p in voices.parameters()]
still = [p.clone() for p in learnt]
paper = [torch.empty(p.shape, dtype=p.dtype, pin_memory=True) for p in learnt]
optimizer = torch.optim.AdamW(voices.parameters(), lr=1e-5, fused=True)
aside, idle, orders = torch.cuda.Stream(), threading.Event(), queue.Queue()
idle.set()


def writer(path):
    while (there := orders.get()) is not None:
        there.synchronize()
        with open(path, "wb", buffering=0) as out:
            for part in paper:
                out.write(memoryview(part.view(torch.uint8).numpy()).cast("B"))
        idle.set()


def keep():
    """Lets the writer have the weights as they are now, unless it still writes."""
    if not idle.is_set():
        return
    idle.clear()
    torch._foreach_copy_(still, learnt)
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for to, of in zip(paper, still):
            to.copy_(of, non_blocking=True)
        there = torch.cuda.Event()
        there.record()
    orders.put(there)


with tempfile.TemporaryDirectory() as folder:
    thread = threading.Thread(target=writer, args=(os.path.join(folder, "voices"),), daemon=True)
    thread.start()
    for i in steps(torch.cuda.synchronize, each=EVERY):
        loss = F.mse_loss(voices(calls[i % 4]), birds[i % 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % EVERY == 0:
            keep()
    orders.put(None)
    thread.join()
