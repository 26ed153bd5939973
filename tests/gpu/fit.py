#!/usr/bin/env python3
"""Derives the numbers of crates/profile/src/h200.toml that are marked `measured`, each with the scenario it
comes from, and prints them beside what the profile says. What tests/data/h200/held_out.txt names is not read.

usage: fit.py [FOLDER]

Kernels and the host's time per launch come from the figures in tests/data/h200 (the GPU and the host that the
profile describes). FOLDER adds the GPU's own latencies from whole recordings, SCENARIO.json.gz:
    cuptop run SCENARIO --headless --save DIR; cuptop export DIR --to chrome -o SCENARIO.json.gz
Host times of another machine are printed to compare, not to copy: a call takes what that CPU takes.
"""

import gzip
import json
import pathlib
import sys
import tomllib
from decimal import Decimal
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = ROOT / "tests" / "data" / "h200"
PROFILE = tomllib.loads((ROOT / "crates/profile/src/h200.toml").read_text())
HELD_OUT = {
    line for line in (FIGURES / "held_out.txt").read_text().split("\n") if line and not line.startswith("#")
}


def usable(scenario):
    if scenario in HELD_OUT:
        sys.exit(f"{scenario} is held out: nothing may be fitted to it")
    return scenario


def say(number, fitted, source):
    """One line: the number, what the profile has, what comes out here, and from where."""
    value = PROFILE
    for key in number.split(".") if number else []:
        value = value[key]
    has = f"{value:>10,}" if number else " " * 10
    print(f"{number:34} {has}  {fitted:>10,.{0 if fitted >= 100 else 3}f}  {source}")


# --- figures of the first machine ---------------------------------------------------------------


def variants(scenario, name):
    """The variant's figures, by the point of the sweep."""
    found = json.loads((FIGURES / f"{usable(scenario)}.json").read_text())["variants"]
    return {v["point"]: v for v in found if v["name"] == name}


def kernel(scenario, name, entry, point=None):
    return variants(scenario, name)[point]["kernels"][entry]


def line(points):
    """Slope and intercept through (x, y) with the least squares of relative errors, which is what is compared."""
    w = [1 / y**2 for _, y in points]
    mean_x = sum(k * x for k, (x, _) in zip(w, points)) / sum(w)
    mean_y = sum(k * y for k, (_, y) in zip(w, points)) / sum(w)
    covariance = sum(k * (x - mean_x) * (y - mean_y) for k, (x, y) in zip(w, points))
    slope = covariance / sum(k * (x - mean_x) ** 2 for k, (x, _) in zip(w, points))
    return slope, mean_y - slope * mean_x


def host_calls():
    between = PROFILE["api"]["between_ns"]
    each = [
        ("cuda_graph launches", variants("cuda_graph", "launches")[None]["makespan_ns"] / 2000 - between),
        ("tiny_copies kernels", variants("tiny_copies", "kernels")[None]["makespan_ns"] / 4096 - between),
    ]
    for source, ns in each:
        say("", ns, f"  launch, {source}: makespan per launch less between_ns")
    launch = sum(ns for _, ns in each) / len(each)
    say("api.launch_ns", launch, "mean of the two")


def kernels():
    device, kernel_, entries = PROFILE["device"], PROFILE["kernel"], PROFILE["entry"]
    sizes = [32, 64, 128, 256, 512, 1024]  # up to 64 blocks: one on a multiprocessor
    times = [(n, kernel("cpu_or_gpu", "gpu_matmul_alone", "matmul_tiled", n)) for n in sizes]
    slope, fixed = line(times)
    say("entry.matmul_tiled.fixed_ns", fixed, "cpu_or_gpu gpu_matmul_alone: a line through all n")
    per_sm = 2 * 128 * 128 / slope  # FLOP per ns of one block of 256 threads
    full = device["fp32_tflops"] * 1e3 * entries["matmul_tiled"]["compute_share"] / device["multiprocessors"]
    say("kernel.threads_for_compute", 256 / (per_sm / full), f"the same line: a block reaches {per_sm / full:.3f}")

    small = [(i, kernel("roofline", "small", "fma_loop", i)) for i in (1, 4, 16, 64, 256, 1024)]
    alone = 8 * 1024 / kernel_["sm_gbps"]  # a block has a multiprocessor to itself, and 8 KiB to move
    say("entry.fma_loop.fixed_ns", line(small)[1] - alone, "roofline small: a line through all iterations, less its traffic")
    time = kernel("roofline", "large", "fma_loop", 1) - entries["fma_loop"]["fixed_ns"]
    share = 8 * 32 * 2**20 / time / device["memory_gbps"]
    say("entry.fma_loop.memory_share", share, "roofline large @ 1")

    def sin(n):
        return kernel("cpu_or_gpu", "gpu_sin_alone", "sin_once", n)

    say("entry.sin_once.fixed_ns", median(sin(n) - alone for n in (32, 64, 128, 256)), "cpu_or_gpu gpu_sin_alone, n up to 256, less the same")
    fixed = entries["sin_once"]["fixed_ns"]
    cached = 8 * 1024**2 / (sin(1024) - fixed)
    block = 8 * 1024 / (sin(256) - fixed)
    part = cached / device["multiprocessors"]
    say("kernel.threads_for_memory", 256 * min(part / block, 1), f"at least, cpu_or_gpu gpu_sin_alone: 256 threads draw {block:.0f} GB/s (256), an SM's part of the whole is {part:.0f} (1024)")
    streamed = 8 * 64 * 2**20 / (kernel("fused_sin", "separate", "sin_once") - fixed)
    say("kernel.l2_gain", cached / streamed, f"sin_once: {cached:.0f} (cpu_or_gpu 1024) against {streamed:.0f} GB/s (fused_sin)")
    add = 2 * 16 * 2**20 / (kernel("alloc_in_loop", "reuse", "add_one") - entries["add_one"]["fixed_ns"])
    slow = entries["add_one"]["memory_share"] * device["memory_gbps"]
    say("kernel.l2_gain", add / slow, f"add_one: {add:.0f} (alloc_in_loop) against {slow:.0f} GB/s (calibrated)")
    say("entry.reduce_sum.fixed_ns", kernel("tiny_copies", "kernels", "reduce_sum"), "tiny_copies kernels")
    rate = entries["transpose_row"]["memory_share"] * device["memory_gbps"] * kernel_["l2_gain"]
    row = kernel("transpose", "row_by_row", "transpose_row")
    say("entry.transpose_row.fixed_ns", row - 2 * 4 * 4096 / rate, "transpose row_by_row, less the calibrated traffic")


# --- recordings ---------------------------------------------------------------------------------


class Recording:
    """Calls, operations and passes of a Chrome export, in ns."""

    def __init__(self, folder, scenario):
        with gzip.open(folder / f"{usable(scenario)}.json.gz") as file:
            events = json.load(file, parse_float=Decimal)["traceEvents"]
        self.calls, self.ops, self.repeats = {}, [], []
        for e in (e for e in events if e["ph"] == "X"):
            start = int(e["ts"] * 1000)
            args = e.get("args", {})
            record = {"name": e["name"], "start": start, "end": start + int(e["dur"] * 1000), **args}
            if e["cat"] == "cuda_driver":
                self.calls[args["correlation"]] = record
            elif e["cat"] in ("kernel", "gpu_memcpy"):
                record["kind"] = "kernel" if e["cat"] == "kernel" else e["name"].split(" (")[0]
                self.ops.append(record)
            elif args.get("cuptop range") == "repeat":
                self.repeats.append(record)
        self.ops.sort(key=lambda op: op["start"])

    def passes(self, name):
        """Of each repeat of a variant: its operations, each with its call, and its calls."""
        for r in (r for r in self.repeats if r["name"] == name):
            calls = [c for c in self.calls.values() if r["start"] <= c["start"] < r["end"]]
            known = {c["correlation"] for c in calls}
            yield [(op, self.calls[op["correlation"]]) for op in self.ops if op["correlation"] in known], calls

    def gaps(self, name, before, after):
        """From the end of one operation to the start of the next on its stream, where that one was queued in time."""
        found = []
        for ops, _ in self.passes(name):
            last = {}
            for op, call in ops:
                prior = last.get(op["stream"])
                if prior and (prior["kind"], op["kind"]) == (before, after) and call["end"] < prior["end"]:
                    found.append(op["start"] - prior["end"])
                last[op["stream"]] = op
        return found

    def delays(self, name):
        """From the end of the first call of each pass to the start of its operation."""
        return [ops[0][0]["start"] - ops[0][1]["end"] for ops, _ in self.passes(name)]

    def wakes(self, name):
        """From the end of a pass's last operation to the return of the call that waited for it."""
        found = []
        for ops, calls in self.passes(name):
            end = max(op["end"] for op, _ in ops)
            found += [c["end"] - end for c in calls if c["start"] < end <= c["end"] and "Synchronize" in c["name"]]
        return found


def latencies(folder):
    h2d, d2h = "Memcpy HtoD", "Memcpy DtoH"
    sin, warm = Recording(folder, "fused_sin"), Recording(folder, "warmup")
    pipeline, engines = Recording(folder, "pipeline"), Recording(folder, "copy_engines")
    alloc, transpose = Recording(folder, "alloc_in_loop"), Recording(folder, "transpose")

    starts = sin.delays("separate") + sin.delays("fused") + alloc.delays("reuse")
    starts += [ns for name in ("naive", "tiled", "padded") for ns in transpose.delays(name)]
    say("latency.launch_ns", median(starts), "fused_sin, alloc_in_loop reuse, transpose: median")
    say("latency.copy_ns", median(warm.delays("warm")), "warmup warm: median")
    wakes = sin.wakes("separate") + sin.wakes("fused")
    say("latency.wake_ns", median(wakes), "fused_sin, after a kernel: median (this host's)")
    say("latency.wake_ns", median(warm.wakes("warm")), "warmup warm, after a copy: median (this host's)")
    usual = alloc.gaps("reuse", "kernel", "kernel")
    say("latency.kernel_to_kernel_ns", median(usual), "alloc_in_loop reuse: median")
    pool = alloc.gaps("pool", "kernel", "kernel")
    say("memory.pool_stream_ns", median(pool) - median(usual), "alloc_in_loop pool less reuse: medians")
    say("latency.copy_to_copy_ns", median(engines.gaps("uploads_one_stream", h2d, h2d)), "copy_engines uploads_one_stream: median")

    periods = []
    for number, before, after in (("copy_to_kernel_ns", h2d, "kernel"), ("kernel_to_copy_ns", "kernel", d2h)):
        least = []
        for source, recording, name in (("pipeline", pipeline, "sequential"), ("warmup", warm, "warm")):
            gaps = recording.gaps(name, before, after)
            # An end falls anywhere in the period: n draws from it span (n - 1) / (n + 1) of it.
            periods.append((max(gaps) - min(gaps)) * (len(gaps) + 1) / (len(gaps) - 1))
            least += gaps
            say("", periods[-1], f"  period, {source} {name}, {before} to {after}: {min(gaps)} to {max(gaps)}, n = {len(gaps)}")
        say(f"latency.{number}", min(least), "pipeline sequential, warmup warm: the least")
    say("latency.poll_ns", median(periods), "pipeline sequential, warmup warm: median of the four periods")

    copies = [op for ops, _ in pipeline.passes("sequential") for op, _ in ops if op["kind"] == h2d]
    bare = copies[0]["bytes"] / PROFILE["copy"]["h2d_gbps"] + PROFILE["copy"]["h2d_fixed_ns"]
    say("copy.h2d_ramp_ns", min(op["end"] - op["start"] for op in copies) - bare, "pipeline sequential, 16 MiB: the least")
    staged = [op for op in sin.ops if "Pageable" in op["name"]]
    begin = median(op["start"] - sin.calls[op["correlation"]]["start"] for op in staged)
    gbps = median(op["bytes"] / (op["end"] - op["start"]) for op in staged)
    say("copy.stage_bytes", begin * gbps, f"fused_sin, filling 256 MiB: the DMA begins {begin:.0f} ns after the call and then takes {gbps:.1f} GB/s")

    shares = []
    for recording, name in ((pipeline, "sequential"), (pipeline, "streamed"), (warm, "warm")):
        for _, calls in recording.passes(name):
            took = {n: [c["end"] - c["start"] for c in calls if n in c["name"]] for n in ("LaunchKernel", "HtoDAsync", "DtoHAsync")}
            shares += [median(took[n]) / median(took["LaunchKernel"]) for n in ("HtoDAsync", "DtoHAsync")]
    share = median(shares)
    say("api.copy_ns", share * PROFILE["api"]["launch_ns"], f"pipeline, warmup warm: a copy's call takes {share:.2f} of a launch's beside it")


def main():
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    print(f"held out: {', '.join(sorted(HELD_OUT))}\n{'number':34} {'profile':>10}  {'fitted':>10}  from")
    host_calls()
    kernels()
    if len(sys.argv) == 2:
        latencies(pathlib.Path(sys.argv[1]))


main()
