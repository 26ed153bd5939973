"""Trains a wide network, and puts it away now and then so that little is lost when the power fails."""
import concurrent.futures
import os
import tempfile

import torch
from torch import nn

from gauge import cured, steps

WIDTH, DEPTH, ROWS, EVERY = 4096, 6, 8192, 25
torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(DEPTH))).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
rows = torch.randn(16, ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "model.pt")
pool, writing = concurrent.futures.ThreadPoolExecutor(1), None
held = {name: torch.empty_like(p, device="cpu", pin_memory=True) for name, p in model.state_dict().items()} if cured else {}


def write(copied):
    copied.synchronize()
    torch.save(held, path)


def put_away():
    global writing
    if not cured:
        torch.save(model.state_dict(), path)
    elif writing is None or writing.done():
        for name, p in model.state_dict().items():
            held[name].copy_(p, non_blocking=True)
        copied = torch.cuda.Event(blocking=True)
        copied.record()
        writing = pool.submit(write, copied)


for i in steps(torch.cuda.synchronize, each=EVERY):
    some = rows[i % len(rows)]
    loss = (model(some) - some).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % EVERY == 0:
        put_away()
pool.shutdown()
folder.cleanup()
