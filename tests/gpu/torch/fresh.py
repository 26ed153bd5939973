#!/usr/bin/env python3
"""Programs that no rule of cuptop was fitted to, each with a mistake and without: see pairs.py.

usage: fresh.py --all DIR [--rounds R]

Every program takes its turns in one process and leaves DIR/NAME-mistake.ROUND.json.gz and DIR/NAME-cure.ROUND.json.gz.
What a cure changes lies in a named range of the mistake, so that an edit can be limited to it.
"""
import argparse
import pathlib
import time

import torch
from torch import nn
from torch.profiler import record_function as part

import pairs

N = 4096


class Images:
    """Classifies images: the batch comes from pageable memory, by a blocking copy."""

    edit = "pin@upload+no-sync@upload"

    def __init__(self, cured):
        self.cured = cured
        torch.manual_seed(1)
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.BatchNorm2d(64),
            nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000),
        ).cuda().eval()
        self.batch = torch.rand(128, 3, 160, 160)
        if cured:
            self.batch = self.batch.pin_memory()

    @torch.no_grad()
    def step(self):
        with part("upload"):
            x = self.batch.to("cuda", non_blocking=self.cured)
        self.net(x).argmax(1).cpu()


class Recurrent:
    """A recurrent cell, step by step: launches, which a graph takes at once."""

    edit = "graph"

    def __init__(self, cured):
        torch.manual_seed(2)
        self.cell = nn.GRUCell(256, 256).cuda()
        self.x = torch.rand(48, 64, 256, device="cuda")
        self.h = torch.zeros(64, 256, device="cuda")
        self.graph = None
        if cured:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                self.loop()
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loop()

    @torch.no_grad()
    def loop(self):
        h = self.h
        for x in self.x:
            h = self.cell(x, h)
        self.out = h

    def step(self):
        if self.graph:
            self.graph.replay()
        else:
            self.loop()
        self.out[0, 0].item()


class Metrics:
    """Logs sixteen figures of a step, each fetched by itself."""

    edit = "drop:log"

    def __init__(self, cured):
        self.cured = cured
        self.x = torch.rand(N, N, device="cuda")
        self.seen = []

    def step(self):
        y = self.x @ self.x
        for i in range(16):
            z = y[i::16].mean()
            if not self.cured:
                with part("log"):
                    self.seen = [z.item()]
        self.seen = [z.item()]


class Pieces:
    """Uploads a batch of 128 sentences one by one, or together."""

    edit = "merge-copies@upload"

    def __init__(self, cured):
        self.cured = cured
        self.pieces = [torch.rand(16 * 1024).pin_memory() for _ in range(128)]
        self.whole = torch.rand(128, 16 * 1024).pin_memory()
        self.there = torch.empty(128, 16 * 1024, device="cuda")
        self.w = torch.rand(16 * 1024, 1024, device="cuda")

    def step(self):
        with part("upload"):
            if self.cured:
                self.there.copy_(self.whole, non_blocking=True)
            else:
                for i, piece in enumerate(self.pieces):
                    self.there[i].copy_(piece, non_blocking=True)
        (self.there @ self.w).sum().item()


class Momentum:
    """SGD with momentum over 120 parameters: a kernel for each, or for all."""

    edit = "fuse@Optimizer.step#SGD.step"

    def __init__(self, cured):
        torch.manual_seed(3)
        self.net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(60)]).cuda()
        self.x = torch.rand(64, 512, device="cuda")
        extra = dict(fused=True) if cured else dict(foreach=False)
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9, **extra)

    def step(self):
        self.optimiser.zero_grad(set_to_none=True)
        self.net(self.x).square().mean().backward()
        self.optimiser.step()


class Checks:
    """Asks after every layer whether there is a NaN: the host waits each time."""

    edit = "drop:check"

    def __init__(self, cured):
        self.cured = cured
        torch.manual_seed(4)
        self.layers = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(24)]).cuda()
        self.x = torch.rand(2048, 1024, device="cuda")

    @torch.no_grad()
    def step(self):
        x = self.x
        for layer in self.layers:
            x = layer(x).relu()
            if not self.cured:
                with part("check"):
                    assert not torch.isnan(x).any().item()
        x.sum().item()


class Samples(torch.utils.data.Dataset):
    """Samples that take a third of a millisecond of the processor each."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        end = time.perf_counter() + 300e-6
        x = torch.full((1024,), float(i % 7))
        while time.perf_counter() < end:
            pass
        return x


class Loader:
    """Loads its batches itself, or has them ready: four processes work ahead."""

    edit = "prefetch:load=4"

    def __init__(self, cured):
        # One batch ahead each: what was made before the steps that are recorded is soon used up.
        ahead = dict(num_workers=4, prefetch_factor=1) if cured else {}
        self.batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=32, **ahead))
        self.w = torch.rand(N, N, device="cuda")
        self.into = torch.rand(1024, N, device="cuda")

    def step(self):
        with part("load"):
            x = next(self.batches)
        y = x.to("cuda") @ self.into
        for _ in range(2):
            y = y @ self.w
        y.sum().item()


PROGRAMS = dict(loader=Loader, images=Images, recurrent=Recurrent, metrics=Metrics, pieces=Pieces, momentum=Momentum, checks=Checks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    steps = {}
    for name, program in PROGRAMS.items():
        steps[f"{name}-mistake"] = program(False).step
        steps[f"{name}-cure"] = program(True).step
    steps["metrics-mistake-again"] = PROGRAMS["metrics"](False).step
    pairs.take_turns(steps, args.all, args.rounds)


if __name__ == "__main__":
    main()
