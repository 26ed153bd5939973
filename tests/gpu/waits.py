#!/usr/bin/env python3
"""What records of waits cost while they are on, and after they were switched off again.

usage: waits.py OUT [--rounds R] [--seconds S]

A loop of small kernels on two streams that wait for each other's events runs under a collector that does nothing
(`switched_injection.cpp`): S seconds without records of waits, S with, S after they were switched off. Needs a GPU, g++ and torch. The table
has the median time of a step in each part, by what was switched; the exit status is 0.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = """
import json, sys, time, torch
seconds = float(sys.argv[1])
x = torch.zeros(1024, device="cuda")
a, b = torch.cuda.Stream(), torch.cuda.Stream()
def step():
    for _ in range(50):
        with torch.cuda.stream(a):
            x.add_(1)
        b.wait_event(a.record_event())
        with torch.cuda.stream(b):
            x.mul_(1)
        a.wait_event(b.record_event())
times, begin = [], time.monotonic()
while time.monotonic() - begin < seconds:
    since = time.monotonic()
    step()
    torch.cuda.synchronize()
    times.append((since, time.monotonic() - since))
json.dump(times, open(sys.argv[2], "w"))
"""
# What is switched: a name, the kinds (38: synchronisations, 36: events), what EnableAllSyncRecords is called with.
CASES = [
    ("nothing", "", ""),
    ("synchronisations", "38", ""),
    ("synchronisations, not all", "38", "0"),
    ("events", "36", ""),
    ("both, not all", "38,36", "0"),
    ("both, not all, then all", "38,36", "1"),
    ("callbacks in their place", "", ""),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    library = args.out / "switched_injection.so"
    subprocess.run(["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-o", library, HERE / "switched_injection.cpp", "-ldl", "-lpthread"], check=True)
    rows = {}
    for r in range(args.rounds):
        for name, kinds, all_sync in CASES:
            steps, switches = args.out / "steps.json", args.out / "switches.txt"
            for old in (steps, switches):
                old.unlink(missing_ok=True)
            # The collector begins with the context, a moment before the loop.
            seconds = 3 * args.seconds + 0.5
            env = dict(os.environ, CUDA_INJECTION64_PATH=str(library), SWITCHED=kinds, ALL_SYNC=all_sync, SWITCHED_S=str(args.seconds), SWITCHED_OUT=str(switches))
            if name.startswith("callbacks"):
                env["CALLBACKS"] = "1"
            done = subprocess.run([sys.executable, "-c", PROGRAM, str(seconds), str(steps)], env=env, capture_output=True, text=True, timeout=120)
            if done.returncode or not switches.exists():
                print(name, "exit", done.returncode, done.stderr[-500:], file=sys.stderr)
                continue
            on, off = map(float, switches.read_text().split())
            parts = [[], [], []]
            for since, took in json.loads(steps.read_text()):
                if min(abs(since - on), abs(since - off)) > 0.1:
                    parts[0 if since < on else 1 if since < off else 2].append(took * 1e3)
            if all(parts):
                rows.setdefault(name, []).append([statistics.median(part) for part in parts])
    (args.out / "waits.json").write_text(json.dumps(rows, indent=1))
    print(f"{'median step in ms':28} {'before':>8} {'on':>8} {'after':>8} {'on':>8} {'after':>8}")
    for name, turns in rows.items():
        for before, on, after in turns:
            print(f"{name:28} {before:8.3f} {on:8.3f} {after:8.3f} {on / before - 1:+8.1%} {after / before - 1:+8.1%}")


if __name__ == "__main__":
    main()
