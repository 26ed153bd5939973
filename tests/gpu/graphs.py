#!/usr/bin/env python3
"""What recording CUDA graphs costs: their nodes, or each launch as a whole, on a program like a decoder's.

usage: graphs.py CUPTOP [--steps N] [--nodes N] [--rounds N]      (needs python3 with torch, and a GPU)
       graphs.py --program --steps N --nodes N [--profile]        (the program by itself: what is traced)

The program captures one step of NODES small kernels as a CUDA graph and replays it STEPS times; after each replay one number
comes back to the host, as a decoder's token does. With the defaults that is 1,000,000 kernels. It runs by itself, under `cuptop trace
--graphs nodes`, under `--graphs whole`, and under torch.profiler, by turns; the time is that of the replays alone. Every kernel
(or launch) has to be recorded and none lost. Ends with a table and the number of checks that failed, which is also the exit
status.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
FAILED = []
MODES = ["bare", "nodes", "whole", "torch.profiler"]
# Replays before the clock starts.
WARM = 20


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + str(detail) if detail != '' else ''}", flush=True)
    if not ok:
        FAILED.append(what)


def replay(torch, steps, nodes):
    """Seconds that the replays took."""
    x = torch.ones(4096, device="cuda")
    weights = torch.full((4096,), 1.0000001, device="cuda")

    def step():
        for _ in range(nodes):
            torch.mul(x, weights, out=x)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(WARM):
        graph.replay()
        x[0].item()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        graph.replay()
        x[0].item()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def program(steps, nodes, profiled):
    import torch

    events, stopping = None, 0.0
    if profiled:
        from torch.profiler import ProfilerActivity, profile

        profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        profiler.start()
        took = replay(torch, steps, nodes)
        begin = time.perf_counter()
        profiler.stop()
        stopping = time.perf_counter() - begin
        events = sum("CUDA" in str(event.device_type()) for event in profiler.profiler.kineto_results.events())
    else:
        took = replay(torch, steps, nodes)
    print("PROGRAM " + json.dumps({"seconds": took, "events": events, "stopping": stopping}), flush=True)


def run(cuptop, mode, steps, nodes):
    """What the program said, and cuptop's report where it watched."""
    own = [sys.executable, HERE, "--program", "--steps", steps, "--nodes", nodes]
    if mode == "torch.profiler":
        own.append("--profile")
    watched = mode in ("nodes", "whole")
    if watched:
        own = [cuptop, "trace", "--headless", "--json", "--graphs", mode, "--", *own]
    begin = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in own], capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired:
        check(f"{mode}: ended within 400 s", False)
        return None, {}
    said = [line for line in done.stdout.splitlines() if line.startswith("PROGRAM ")]
    if done.returncode or not said:
        check(f"{mode}: ran", False, f"exit code {done.returncode}: {done.stderr[-600:]}")
        return None, {}
    at = done.stdout.find("{\n")
    report = json.loads(done.stdout[at:]) if watched and at >= 0 else {}
    result = json.loads(said[-1][len("PROGRAM "):])
    result["whole_s"] = time.monotonic() - begin
    return result, report


def recorded(report, mode, steps, nodes):
    """Checks that nothing is missing; how many records there are of the GPU."""
    devices = report.get("devices") or [{}]
    ops, kernels = devices[0].get("ops", 0), devices[0].get("kernels", 0)
    health = report.get("health", {})
    lost = sum(health.get(key, 0) for key in ("dropped", "lost", "unknown")) + sum((health.get("rejected") or {}).values())
    let_go = (report.get("let_go") or {}).get("records", 0)
    replays = steps + WARM
    if mode == "nodes":
        # Besides the graph's: one step to warm up, the filling of two tensors.
        expected = replays * nodes
        check(f"{mode}: every kernel of every replay is there", kernels + let_go >= expected, f"{kernels:,} of {expected:,}, {let_go:,} let go")
        check(f"{mode}: and few others", kernels + let_go <= expected + nodes + 100 + replays, f"{kernels:,}")
    else:
        # A launch, and the copy of the number that comes back.
        check(f"{mode}: a record for each replay", 2 * replays <= ops + let_go <= 2 * replays + 2 * nodes + 200, f"{ops:,} operations for {replays:,} replays")
    check(f"{mode}: none lost", lost == 0, str({key: health.get(key) for key in ("dropped", "lost", "unknown", "rejected")}))
    return ops


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--program", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.program:
        return program(options.steps, options.nodes, options.profile)
    if not options.cuptop:
        parser.error("say where cuptop is")
    times, counts, watching, rest = {mode: [] for mode in MODES}, {}, {}, {}
    for round_ in range(options.rounds):
        # The other way round each time: what drifts falls on all of them.
        for mode in MODES if round_ % 2 == 0 else reversed(MODES):
            result, report = run(options.cuptop, mode, options.steps, options.nodes)
            if result is None:
                continue
            times[mode].append(result["seconds"])
            rest.setdefault(mode, []).append(result["whole_s"] - result["seconds"])
            if report:
                counts[mode] = recorded(report, mode, options.steps, options.nodes)
                watching[mode] = report.get("watching") or {}
            elif result["events"] is not None:
                counts[mode] = result["events"]
                expected = (options.steps + WARM) * options.nodes
                check("torch.profiler: as many kernels", result["events"] >= expected, f"{result['events']:,} of {expected:,}")
            print(f"----  {mode}: {result['seconds']:.3f} s", flush=True)
    kernels = options.steps * options.nodes
    bare = statistics.median(times["bare"]) if times["bare"] else None
    print(f"\n{options.steps:,} replays of a graph of {options.nodes} kernels, {kernels:,} kernels; us a kernel over {options.rounds} rounds")
    print(f"{'':15} {'median':>8} {'least':>8} {'most':>8} {'over bare':>10} {'records':>11} {'rest of the run':>16}")
    for mode in MODES:
        if not times[mode]:
            print(f"{mode:15} did not run")
            continue
        per = [seconds / kernels * 1e6 for seconds in times[mode]]
        over = f"{(statistics.median(times[mode]) / bare - 1) * 100:+.1f} %" if bare else ""
        records = f"{counts[mode]:,}" if mode in counts else ""
        print(f"{mode:15} {statistics.median(per):8.3f} {min(per):8.3f} {max(per):8.3f} {over:>10} {records:>11} {statistics.median(rest[mode]):14.1f} s")
    for mode, found in watching.items():
        if found.get("nodes_ns"):
            print(f"cuptop estimates for {mode}: {found['nodes_ns'][0] / 1e9:.2f} to {found['nodes_ns'][1] / 1e9:.2f} s of graphs' time, {found['graph_nodes']:,} nodes")
    if all(times[mode] for mode in ("bare", "nodes", "whole")):
        whole, nodes = statistics.median(times["whole"]), statistics.median(times["nodes"])
        check("whole graphs cost less than nodes", whole < nodes, f"{whole:.3f} against {nodes:.3f} s")
    print(f"{len(FAILED)} checks failed")
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
