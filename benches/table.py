#!/usr/bin/env python3
"""Runs what measures cuptop's speed and prints one table of it (docs/PERFORMANCE.md).

usage: table.py [--cuptop FILE] [--benches DIR] [--operations N] [--runs N] [--python FILE] [--only PART,…] [--json FILE]

  --cuptop FILE   the program (target/release/cuptop)
  --benches DIR   a folder of bench binaries by name (store, frame, …) instead of `cargo bench`: for a machine without Rust
  --operations N  kernels in the trace files that are made for opening (1000000: 1.2 GB)
  --runs N        how often a file is opened; the median is shown (3)
  --python FILE   a Python that has HolisticTraceAnalysis, to open the same file beside
  --only PART     of: benches, open, simulator

Figures are of this machine and of what else it did meanwhile: the load before and after stands in the table. A bench counts the CPU
time of the thread that it measures, a file is opened against the wall clock. "to reach" is what the project set itself;
what it misses is marked.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BENCHES = ["store", "frame", "draw", "graph", "open", "recording"]
# What is to be reached, by the name of a row: the bound, and whether more is better.
REACH = {
    "frame/all/10^7": (4e6, False),
    "open/large.json": (1000.0, True),
    "open/large.sqlite": (1.0, True),
}


def machine():
    name = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{name}, {cores} core{'s' if cores != 1 else ''}"


def load():
    return os.getloadavg()[0]


def time_of(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def verdict(name, value):
    if name not in REACH:
        return ""
    bound, is_more_better = REACH[name]
    return "reached" if (value >= bound) == is_more_better or value == bound else "**missed**"


def run_benches(folder, wanted, quick, files=()):
    """Rows of every criterion bench, and the lines that the graph's bench says of its parts."""
    rows, said = [], []
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, CRITERION_HOME=home)
        if files:
            environment["CUPTOP_BENCH_FILES"] = ":".join(map(str, files))
        for bench in wanted:
            if folder:
                command = [str(folder / bench), "--bench"]
            else:
                command = ["cargo", "bench", "--locked", "--bench", bench, "--"]
            command += ["--noplot"] + (["--quick"] if quick else [])
            print(f"bench {bench} …", file=sys.stderr, flush=True)
            done = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True)
            if done.returncode:
                print(done.stderr[-2000:], file=sys.stderr)
                sys.exit(f"the bench {bench} failed")
            said += [line for line in done.stderr.splitlines() if re.match(r"\d+ operations: ", line)]
        for file in sorted(pathlib.Path(home).rglob("new/estimates.json")):
            about = json.loads((file.parent / "benchmark.json").read_text())
            mean = json.loads(file.read_text())["mean"]
            ns, (low, high) = mean["point_estimate"], (
                mean["confidence_interval"]["lower_bound"], mean["confidence_interval"]["upper_bound"])
            name = about["full_id"]
            rate = ""
            for kind, count in (about.get("throughput") or {}).items():
                per_second = count / ns * 1e9
                rate = f"{per_second / 1e6:.0f} MB/s" if kind.startswith("Bytes") else f"{per_second / 1e6:.1f} M/s"
            rows.append(dict(name=name, ns=ns, low=low, high=high, rate=rate))
    return rows, said


def measured(command, runs, out=subprocess.DEVNULL):
    """Median wall and processor seconds, and the greatest resident MiB."""
    wall, cpu, most = [], [], 0
    for _ in range(runs):
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall.append(time.monotonic() - began)
        if child.returncode:
            sys.exit(f"{' '.join(map(str, command))} ended with {child.returncode}")
        cpu.append(usage.ru_utime + usage.ru_stime)
        most = max(most, usage.ru_maxrss / 1024)
    return dict(wall=statistics.median(wall), cpu=statistics.median(cpu), mib=most)


HTA = """
import sys, tempfile, shutil, os
from hta.trace_analysis import TraceAnalysis
with tempfile.TemporaryDirectory() as d:
    os.symlink(sys.argv[1], os.path.join(d, "rank0.json"))
    TraceAnalysis(trace_dir=d)
"""


def opened(cuptop, operations, runs, python, bench):
    """What opening large files takes: the reader into the store alone (`bench`), and whole programs beside others."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plain, packed, nsys = folder / "large.json", folder / "large.json.gz", folder / "large.sqlite"
        print("making trace files …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, HERE / "make_kineto.py", str(operations), plain], check=True)
        subprocess.run([sys.executable, HERE / "make_nsys.py", str(operations), nsys], check=True)
        with open(packed, "wb") as to:
            subprocess.run(["gzip", "-6", "-c", plain], check=True, stdout=to)
        size, database = plain.stat().st_size, nsys.stat().st_size
        count = operations * 2.2e-6
        print("opening them …", file=sys.stderr, flush=True)
        for it in bench([plain, packed, nsys]):
            if it["name"] == "open/large.sqlite":
                rate, unit = count / (it["ns"] / 1e9), "M rows/s"
            elif it["name"].startswith("open/large"):
                rate, unit = size / 1e6 / (it["ns"] / 1e9), "MB/s of JSON"
            else:
                continue
            rows.append(dict(name=it["name"], wall=it["ns"] / 1e9, cpu=None, mib=None, rate=rate, unit=unit))

        def row(name, command, megabytes=None, records=None):
            it = measured(command, runs)
            rate = megabytes / it["wall"] if megabytes else records / it["wall"]
            unit = "MB/s of JSON" if megabytes else "M rows/s"
            rows.append(dict(it, name=name, rate=rate, unit=unit))

        row("report of Kineto, plain, with the whole analysis", [cuptop, "report", plain, "--json"], size / 1e6)
        row("report of Kineto, gzip, with the whole analysis", [cuptop, "report", packed, "--json"], size / 1e6)
        row("report of Nsight SQLite, with the whole analysis", [cuptop, "report", nsys, "--json"], records=count)
        row("`wc -c` of the plain file, through a pipe", ["sh", "-c", f"cat '{plain}' | wc -c"], size / 1e6)
        row("`gunzip -c` of the gzip file", ["gunzip", "-c", packed], size / 1e6)
        if python:
            row("HolisticTraceAnalysis, parsing alone", [python, "-c", HTA, plain], size / 1e6)
        rows.append(dict(name="sizes", note=f"{size / 1e6:.0f} MB of JSON, {packed.stat().st_size / 1e6:.0f} MB gzip, {database / 1e6:.0f} MB SQLite"))
    return rows


def simulated(cuptop):
    it = measured([cuptop, "run", "sync_points", "--set", "rounds=20000", "--backend", "sim", "--headless"], 3)
    return it


def main():
    ask = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1].split("\n")[0])
    ask.add_argument("--cuptop", type=pathlib.Path, default=HERE.parent / "target/release/cuptop")
    ask.add_argument("--benches", type=pathlib.Path)
    ask.add_argument("--operations", type=int, default=1_000_000)
    ask.add_argument("--runs", type=int, default=3)
    ask.add_argument("--python")
    ask.add_argument("--only", default="benches,open,simulator")
    ask.add_argument("--quick", action="store_true")
    ask.add_argument("--json", type=pathlib.Path)
    args = ask.parse_args()
    parts = args.only.split(",")
    before = load()
    kept = dict(machine=machine(), date=time.strftime("%Y-%m-%d"))
    if "benches" in parts:
        kept["benches"], kept["parts"] = run_benches(args.benches and args.benches.resolve(), BENCHES, args.quick)
    cuptop = args.cuptop.resolve()
    if {"open", "simulator"} & set(parts) and not cuptop.exists():
        sys.exit(f"{cuptop} is not there: cargo build --release, or --cuptop")
    if "open" in parts:
        benches = args.benches and args.benches.resolve()
        reading = lambda files: run_benches(benches, ["open"], args.quick, files)[0]
        kept["open"] = opened(cuptop, args.operations, args.runs, args.python, reading)
    if "simulator" in parts:
        kept["simulator"] = simulated(cuptop)
    kept["load"] = [before, load()]
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1))
    show(kept)


def show(kept):
    print(f"{kept['machine']}; {kept['date']}; load {kept['load'][0]:.1f} before, {kept['load'][1]:.1f} after\n")
    if "benches" in kept:
        print("| bench | takes | 95 % interval | rate | to reach |\n|---|--:|--:|--:|---|")
        for it in kept["benches"]:
            print(f"| {it['name']} | {time_of(it['ns'])} | {time_of(it['low'])} to {time_of(it['high'])} | {it['rate']} | {verdict(it['name'], it['ns'])} |")
        print()
        for line in kept["parts"]:
            print(f"- {line}")
        print()
    if "open" in kept:
        print("| file | wall | processor | most memory | rate | to reach |\n|---|--:|--:|--:|--:|---|")
        for it in kept["open"]:
            if "note" in it:
                print(f"\n{it['note']}")
                continue
            cpu = "" if it["cpu"] is None else f"{it['cpu']:.2f} s"
            mib = "" if it["mib"] is None else f"{it['mib']:.0f} MiB"
            print(f"| {it['name']} | {it['wall']:.2f} s | {cpu} | {mib} | {it['rate']:.3g} {it['unit']} | {verdict(it['name'], it['rate'])} |")
        print()
    if "simulator" in kept:
        print(f"`run sync_points --set rounds=20000` on the simulator: {kept['simulator']['wall']:.2f} s")


main()
