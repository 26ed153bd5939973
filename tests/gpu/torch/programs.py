#!/usr/bin/env python3
"""Small PyTorch programs, each a lesson about the timeline, for measuring what tracing costs and what it sees.

usage: programs.py [--rounds N] [--profile OUT.json] [NAME...]      (all of them without a name)

Prints one JSON object: {"NAME": median wall time of a round in ms, ...}. With --profile the whole process, warm-up
included, runs under torch.profiler (CUDA activities only), and OUT.json gets {"operation name": [count, total ns]}
for every kernel, copy and memset that it saw.
"""
import argparse
import json
import statistics
import sys
import time

import torch

BATCHES = 8


def first_sum():
    """4096 copies of four bytes to the host, a synchronisation each."""
    x = state("x", lambda: torch.ones(4096, device="cuda"))
    total = 0.0
    for i in range(4096):
        total += x[i].item()
    return total


def second_sum():
    """4096 tiny kernels, one copy."""
    x = state("x", lambda: torch.ones(4096, device="cuda"))
    total = torch.zeros(1, device="cuda")
    for i in range(4096):
        total += x[i]
    return total.item()


def third_sum():
    """One kernel, one copy."""
    x = state("x", lambda: torch.ones(4096, device="cuda"))
    return x.sum().item()


def transpose_rows():
    """A launch for each row."""
    x = state("square", lambda: torch.rand(4096, 4096, device="cuda"))
    out = state("out", lambda: torch.empty(4096, 4096, device="cuda"))
    for row in range(4096):
        out[:, row].copy_(x[row])
    torch.cuda.synchronize()


def nested_sin():
    """Upload of pageable memory, four sines, download."""
    x = state("host", lambda: torch.rand(1 << 24))
    x.cuda().sin().sin().sin().sin().cpu()


def pipeline(streams):
    hosts = state("pinned", lambda: [torch.rand(2048, 2048).pin_memory() for _ in range(BATCHES)])
    outs = state("pinned_out", lambda: [torch.empty(2048, 2048).pin_memory() for _ in range(BATCHES)])
    for i in range(BATCHES):
        with torch.cuda.stream(streams[i % len(streams)]):
            x = hosts[i].to("cuda", non_blocking=True)
            outs[i].copy_(x @ x, non_blocking=True)
    torch.cuda.synchronize()


def sequential():
    """Upload, multiply, download: one stream."""
    pipeline(state("one", lambda: [torch.cuda.Stream()]))


def streamed():
    """Upload, multiply, download: eight streams."""
    pipeline(state("many", lambda: [torch.cuda.Stream() for _ in range(BATCHES)]))


def matmuls():
    """3000 products of 512 x 512."""
    a = state("a", lambda: torch.rand(512, 512, device="cuda"))
    for _ in range(3000):
        torch.matmul(a, a)
    torch.cuda.synchronize()


class Noise(torch.utils.data.Dataset):
    """Random samples."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        return torch.rand(3, 32, 32, generator=g), index % 10


def training():
    """Eight steps of a small network with two loader processes."""
    net = state(
        "net",
        lambda: torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 30 * 30, 10)
        ).cuda(),
    )
    step = state("optimizer", lambda: torch.optim.SGD(net.parameters(), lr=0.01))
    loader = torch.utils.data.DataLoader(Noise(), batch_size=64, num_workers=2, pin_memory=True)
    for image, label in loader:
        loss = torch.nn.functional.cross_entropy(net(image.cuda(non_blocking=True)), label.cuda(non_blocking=True))
        step.zero_grad()
        loss.backward()
        step.step()
    torch.cuda.synchronize()


PROGRAMS = [first_sum, second_sum, third_sum, transpose_rows, nested_sin, sequential, streamed, matmuls, training]
STATE = {}


def state(key, make):
    """What a program makes once and keeps."""
    if key not in STATE:
        STATE[key] = make()
    return STATE[key]


def measure(names, rounds):
    walls = {}
    for program in PROGRAMS:
        if names and program.__name__ not in names:
            continue
        program()
        torch.cuda.synchronize()
        times = []
        for _ in range(2 if program is training else rounds):
            start = time.perf_counter()
            program()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        walls[program.__name__] = round(statistics.median(times), 3)
    return walls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile")
    args = parser.parse_args()
    if not args.profile:
        print(json.dumps(measure(args.names, args.rounds)))
        return
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        walls = measure(args.names, args.rounds)
    seen = {}
    for event in profiler.profiler.kineto_results.events():
        if "CUDA" in str(event.device_type()):
            entry = seen.setdefault(event.name(), [0, 0])
            entry[0] += 1
            entry[1] += event.duration_ns()
    with open(args.profile, "w") as out:
        json.dump(seen, out)
    print(json.dumps(walls))


if __name__ == "__main__":
    sys.exit(main())
