#!/usr/bin/env python3
"""One PyTorch training step with and without its usual mistakes: the twins that predictions are compared with.

usage: pairs.py VARIANT [--size small|large] [--steps N] [--repeat R] [--profile OUT.json.gz] [--range]
       pairs.py --all DIR [--rounds R] VARIANT…

Trains a transformer on data made on the host and prints one JSON object: {"variant", "size", "steps", "repeats":
[{"step_ms", "host_ms": [...]}]}: of each repeat the time of a step, from its first to the synchronisation at its end, and the
host's time in each. A small model is bound by launches on a fast GPU, a large one by the GPU. With --profile a last
repeat runs under torch.profiler (CPU and CUDA), which writes a trace with a ProfilerStep range a step; with --range each
step lies in an NVTX range `step`.

With --all the variants take turns in one process, R rounds of them, each turn under torch.profiler into
DIR/VARIANT.ROUND.json.gz: two processes of one program differ by more than what is to be told apart, turns hardly do. A
variant that is named again gets "-again" behind its name.

Variants name what is right about them; `base` has every mistake:
  base         pageable input, blocking copies, loss.item() in every step, an optimiser with a kernel a parameter
  pin          base, with pinned input and copies that do not block
  no_item      base, without .item()
  fused        base, with a fused optimiser
  pin_no_item, pin_no_item_fused    several at once
  graph        pin_no_item_fused, with the step in a CUDA graph
  cpu          base, with a blocking .cpu() of the logits in every step
  slow_loader  pin_no_item_fused, whose next batch takes 4 ms to arrive, as from a disk
  prefetch     slow_loader, whose batches are made ahead by a thread
"""
import argparse
import json
import pathlib
import queue
import threading
import time

import torch
from torch import nn

LENGTH, LAYERS, WORDS = 128, 4, 1000
SIZES = dict(small=(32, 256), large=(96, 1024))  # sequences a batch, width of the model


def options(variant):
    has = lambda *names: variant in names
    late = ("graph", "slow_loader", "prefetch", "pin_no_item_fused")
    return dict(
        pin=has("pin", "pin_no_item", *late),
        item=not has("no_item", "pin_no_item", *late),
        fused=has("fused", *late),
        graph=has("graph"),
        cpu=has("cpu"),
        slow=has("slow_loader", "prefetch"),
        prefetch=has("prefetch"),
    )


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.input = nn.Linear(width, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(width, WORDS)

    def forward(self, x):
        return self.head(self.layers(self.input(x)))


def batches(pin, slow, batch, width):
    x = torch.rand(batch, LENGTH, width)
    y = torch.randint(WORDS, (batch, LENGTH))
    if pin:
        x, y = x.pin_memory(), y.pin_memory()
    while True:
        if slow:
            time.sleep(0.004)
        yield x, y


def ahead(source, stop):
    ready = queue.Queue(maxsize=4)

    def fill():
        for batch in source:
            while not stop.is_set():
                try:
                    ready.put(batch, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if stop.is_set():
                return

    threading.Thread(target=fill, name="prefetch", daemon=True).start()
    while True:
        yield ready.get()


class Trainer:
    def __init__(self, variant, size):
        batch, width = SIZES[size]
        self.o = options(variant)
        self.stop = threading.Event()
        self.loader = batches(self.o["pin"], self.o["slow"], batch, width)
        if self.o["prefetch"]:
            self.loader = ahead(self.loader, self.stop)
        torch.manual_seed(0)
        self.model = Model(width).cuda()
        extra = dict(fused=True) if self.o["fused"] else dict(foreach=False, fused=False)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-4, capturable=self.o["graph"], **extra)
        self.lossf = nn.CrossEntropyLoss()
        self.seen = 0.0
        self.graph = None

    def compute(self, x, y):
        self.optimiser.zero_grad(set_to_none=True)
        out = self.model(x)
        loss = self.lossf(out.flatten(0, 1), y.flatten())
        loss.backward()
        self.optimiser.step()
        return loss, out

    def capture(self):
        x, y = next(self.loader)
        self.x, self.y = x.cuda(), y.cuda()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute(self.x, self.y)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss, self.out = self.compute(self.x, self.y)

    def step(self):
        x, y = next(self.loader)
        if self.graph is not None:
            self.x.copy_(x, non_blocking=True)
            self.y.copy_(y, non_blocking=True)
            self.graph.replay()
            return
        x = x.to("cuda", non_blocking=self.o["pin"])
        y = y.to("cuda", non_blocking=self.o["pin"])
        loss, out = self.compute(x, y)
        if self.o["item"]:
            self.seen += loss.item()
        if self.o["cpu"]:
            self.seen += float(out.cpu()[0, 0, 0])


def profiled(step, place, kept=8):
    """Some steps under torch.profiler, of which so many are kept. Returns milliseconds a step by the host's clock."""
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=2, active=kept),
        on_trace_ready=lambda p: p.export_chrome_trace(str(place)),
    ) as p:
        for i in range(kept + 4):
            if i == 3:
                torch.cuda.synchronize()
                began = time.perf_counter()
            step()
            if i == kept + 2:
                torch.cuda.synchronize()
                took = time.perf_counter() - began
            p.step()
        torch.cuda.synchronize()
    return took * 1e3 / kept


def take_turns(steps, folder, rounds, kept=8):
    """steps: name -> function of one step. Returns milliseconds a step of every turn by the host's clock."""
    folder.mkdir(parents=True, exist_ok=True)
    walls = {}
    for r in range(rounds):
        for name, step in steps.items():
            for _ in range(3 if r else 10):
                step()
            torch.cuda.synchronize()
            walls[f"{name}.{r}"] = round(profiled(step, folder / f"{name}.{r}.json.gz", kept), 4)
            print(f"round {r}: {name}", flush=True)
    return walls


def turns(args):
    steps, trainers = {}, []
    for name in args.variant:
        trainer = Trainer(name, args.size)
        if trainer.o["graph"]:
            trainer.capture()
        trainers.append(trainer)
        steps[f"{name}-again" if name in steps else name] = trainer.step
    take_turns(steps, args.all, args.rounds)
    for trainer in trainers:
        trainer.stop.set()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", nargs="+")
    parser.add_argument("--all", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--profile")
    parser.add_argument("--range", action="store_true")
    args = parser.parse_args()
    if args.all:
        return turns(args)
    variant = args.variant[0]
    trainer = Trainer(variant, args.size)
    if args.range:
        plain = trainer.step
        def step():
            with torch.cuda.nvtx.range("step"):
                plain()
        trainer.step = step
    if trainer.o["graph"]:
        trainer.capture()
    for _ in range(10):
        trainer.step()
    torch.cuda.synchronize()
    repeats = []
    for r in range(args.repeat):
        marks = [time.perf_counter()]
        for _ in range(args.steps):
            trainer.step()
            marks.append(time.perf_counter())
        torch.cuda.synchronize()
        # What is queued at the end belongs to all steps alike.
        whole = (time.perf_counter() - marks[0]) * 1e3 / args.steps
        repeats.append(dict(step_ms=round(whole, 4), host_ms=[round((b - a) * 1e3, 4) for a, b in zip(marks, marks[1:])]))
    if args.profile:
        profiled(trainer.step, args.profile)
    trainer.stop.set()
    print(json.dumps(dict(variant=variant, size=args.size, steps=args.steps, repeats=repeats)))


if __name__ == "__main__":
    main()
