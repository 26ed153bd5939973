"""Trains a deep network and keeps a checkpoint every fiftieth step."""
import os
import tempfile
import threading

import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
WIDTH, EVERY = 2048, 50
model = nn.Sequential(*[nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(14)], nn.Linear(WIDTH, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
inputs = torch.randn(16384, WIDTH, device="cuda")
targets = torch.randint(512, (16384,), device="cuda")
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "last.pt")
side = torch.cuda.Stream()
staged, writer = {}, None


def train_step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def tensors():
    yield from model.state_dict().items()
    for n, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            yield f"{n}.{key}", value


def save():
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def save_behind():
    """A copy on the GPU, then to pinned memory on a stream of its own, then to the file, by a thread; none if one is still being written."""
    global writer
    if writer and writer.is_alive():
        return
    copies = {name: value.detach().clone() for name, value in tensors()}
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for name, value in copies.items():
            if name not in staged:
                staged[name] = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
            staged[name].copy_(value, non_blocking=True)
            value.record_stream(side)
        copied = side.record_event()
    writer = threading.Thread(target=lambda: (copied.synchronize(), torch.save(staged, path)))
    writer.start()


for i in steps(torch.cuda.synchronize, each=EVERY):
    train_step()
    if i % EVERY == 0:
        save_behind() if cured else save()
if writer:
    writer.join()
