#!/usr/bin/env python3
"""What people do with a long job, on a real GPU: --delay, --duration, --range.

usage: job.py CUPTOP

Needs torch. Traces a loop of small kernels on two streams that wait for each other's events. The last lines are a table; the exit status says whether all checks passed.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time, torch
seconds, outside = float(sys.argv[1]), float(sys.argv[2])
x = torch.zeros(1024, device="cuda")
a, b = torch.cuda.Stream(), torch.cuda.Stream()
def step():
    for _ in range(50):
        with torch.cuda.stream(a):
            x.add_(1)
        done = a.record_event()
        b.wait_event(done)
        with torch.cuda.stream(b):
            x.mul_(1)
        a.wait_event(b.record_event())
for _ in range(20):
    step()
torch.cuda.synchronize()
begin, times = time.perf_counter(), []
while time.perf_counter() - begin < seconds:
    torch.cuda.nvtx.range_push("step")
    since = time.perf_counter()
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    times.append(time.perf_counter() - since)
    torch.cuda.nvtx.range_pop()
    if outside:
        until = time.perf_counter() + outside
        while time.perf_counter() < until:
            x.sub_(1)
        torch.cuda.synchronize()
print("STEPS", len(times), sum(times) / len(times))
"""
TABLE = []


def check(what, ok, detail=""):
    TABLE.append((bool(ok), what, detail))
    print("pass" if ok else "FAIL", what, detail, flush=True)


def trace(cuptop, program, options, arguments):
    with tempfile.TemporaryDirectory() as work:
        command = [cuptop, "trace", "--headless", "--json", *options, "--", sys.executable, str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=work)
    # The program prints to standard output too: the report is what begins with a brace on a line of its own.
    start = done.stdout.find("\n{")
    start = 0 if done.stdout.startswith("{") else start + 1
    try:
        report = json.loads(done.stdout[start:])
    except ValueError:
        report = {}
    steps = [line.split() for line in done.stdout.splitlines() if line.startswith("STEPS")]
    print(" ".join(options) or "(defaults)", "exit", done.returncode, "steps", steps, flush=True)
    if done.returncode:
        print(done.stderr[-2000:])
    return report, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    args = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    program = Path(folder.name) / "loop.py"
    program.write_text(PROGRAM)

    report, _ = trace(args.cuptop, program, ["--delay", "8s", "--duration", "2s"], [15, 0])
    device = (report.get("devices") or [{}])[0]
    span = device.get("span_ns", 0) / 1e9
    off = (report.get("recording") or [{}])[0].get("off_count", 0)
    check("--delay 8s --duration 2s: operations of some 2 s", 1.0 < span < 2.5, f"{span:.2f} s, {off} whiles off")

    report, _ = trace(args.cuptop, program, ["--range", "step"], [6, 0.2])
    device = (report.get("devices") or [{}])[0]
    whole = device.get("span_ns", 0)
    parts = device.get("busy_ns", 0) + device.get("idle_ns", 0) + device.get("not_recorded_ns", 0)
    check("--range step: busy, idle and not recorded are the span", whole > 0 and parts == whole, f"{parts} of {whole}")
    check("--range step: there is time that was not recorded", device.get("not_recorded_ns", 0) > 0.2 * whole)
    _, done = trace(args.cuptop, program, ["--range", "no such"], [2, 0])
    check("--range of nothing says so", "no NVTX range called" in done.stderr)

    print()
    for ok, what, detail in TABLE:
        print(f"{'pass' if ok else 'FAIL'}  {what}  {detail}")
    sys.exit(0 if all(ok for ok, _, _ in TABLE) else 1)


main()
