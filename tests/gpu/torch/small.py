#!/usr/bin/env python3
"""Small programs whose traces are kept in the repository, so that readers are tested with what PyTorch really writes.

usage: small.py OUT_DIR [NAME...]      (all of them without a name; each runs under torch.profiler after a warm-up)

  copies    pinned copies up, a product, copies down, on two streams that overlap
  events    two streams that wait for each other's events, a copy of each kind, a memset
  graph     a captured graph of six kernels, launched five times
  pageable  an upload of pageable memory, four sines, .item() in a loop
"""
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def copies():
    if "copies" not in STATE:
        STATE["copies"] = (
            [torch.rand(512, 512).pin_memory() for _ in range(4)],
            [torch.empty(512, 512).pin_memory() for _ in range(4)],
            [torch.cuda.Stream() for _ in range(2)],
        )
    ins, outs, streams = STATE["copies"]
    for i in range(4):
        with torch.cuda.stream(streams[i % 2]):
            x = ins[i].to("cuda", non_blocking=True)
            outs[i].copy_(x @ x, non_blocking=True)
    torch.cuda.synchronize()


def events():
    if "events" not in STATE:
        STATE["events"] = (torch.rand(1024, 1024, device="cuda"), torch.cuda.Stream(), torch.cuda.Stream())
    x, a, b = STATE["events"]
    for i in range(3):
        with torch.cuda.stream(a), record_function(f"round {i}"):
            y = x @ x
            z = torch.zeros(1 << 20, device="cuda")
            done = a.record_event()
        with torch.cuda.stream(b):
            b.wait_event(done)
            w = y.clone() + z[0]
            back = b.record_event()
        a.wait_event(back)
        with torch.cuda.stream(a):
            w.sum()
    torch.cuda.synchronize()


def graph():
    if "graph" not in STATE:
        x = torch.rand(256, 256, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x @ x
        side.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = x
            for _ in range(3):
                y = (y @ x).sin()
        STATE["graph"] = g
    for _ in range(5):
        STATE["graph"].replay()
    torch.cuda.synchronize()


def pageable():
    if "pageable" not in STATE:
        STATE["pageable"] = torch.rand(1 << 21)
    x = STATE["pageable"].cuda().sin().sin().sin().sin()
    return sum(x[i].item() for i in range(12)), x.cpu()


PROGRAMS = [copies, events, graph, pageable]
STATE = {}


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if sys.argv[2:] and program.__name__ not in sys.argv[2:]:
            continue
        for _ in range(2):
            program()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            program()
            torch.cuda.synchronize()
        p.export_chrome_trace(str(out / f"{program.__name__}.json.gz"))
        print(program.__name__, (out / f"{program.__name__}.json.gz").stat().st_size)


if __name__ == "__main__":
    main()
