#!/usr/bin/env python3
"""A long trace on a real GPU: memory and recording stay bounded, and no record is lost uncounted.

usage: soak.py CUPTOP [--seconds N] [--part soak|burst|graphs]

Needs torch. `soak`: small kernels for 300 s (10^5 records a second and more are looked for); `burst`: 10^7 launches in a row;
`graphs`: a graph of 1,000 kernels launched 10,000 times. Without --part all of them, some 8 minutes. Prints the viewer's resident
memory and the recording's size as they go, for each part a line of them at twelve moments and the greatest (the report at the end
included), and a table last; the exit status says whether all checks passed. `soak` is flat when in the last third of the run
neither took more than a tenth above what it took in the third before.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import sys, time, torch
part, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
x = torch.zeros(1024, device="cuda")
made, begin = 0, time.perf_counter()
if part == "graphs":
    x.add_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            x.add_(1)
    for i in range(count // 1000):
        graph.replay()
        made += 1000
        if i % 100 == 99:
            torch.cuda.synchronize()
else:
    while (made < count) if part == "burst" else (time.perf_counter() - begin < seconds):
        for _ in range(1000):
            x.add_(1)
        made += 1000
torch.cuda.synchronize()
print("MADE", made, time.perf_counter() - begin)
"""
MEMORY_MIB = 1024
TABLE = []


def check(what, ok, detail=""):
    TABLE.append((bool(ok), what, detail))
    print("pass" if ok else "FAIL", what, detail, flush=True)


def resident(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0


def size(folder):
    total = 0
    for path in Path(folder).rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            pass
    return total >> 20


def run(cuptop, program, part, count, seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as runtime, tempfile.TemporaryDirectory() as out:
        os.chmod(runtime, 0o700)
        command = [cuptop, "trace", "--headless", "--json", "--memory", f"{MEMORY_MIB} MiB", "--", sys.executable, str(program), part, str(count), str(seconds)]
        stdout, stderr = Path(out) / "out", Path(out) / "err"
        with stdout.open("w") as o, stderr.open("w") as e:
            child = subprocess.Popen(command, stdout=o, stderr=e, env={**os.environ, "XDG_RUNTIME_DIR": runtime})
            begin, curve, said = time.monotonic(), [], 0.0
            while child.poll() is None:
                now = time.monotonic()
                curve.append((now - begin, resident(child.pid), size(runtime)))
                if now - said > 10:
                    said = now
                    print("%s %5.0f s  viewer %d MiB  recording %d MiB" % (part, *curve[-1]), flush=True)
                time.sleep(0.1)
        text = stdout.read_text()
        print(stderr.read_text()[-3000:])
    most_memory, most_size = (max((at[i] for at in curve), default=0) for i in (1, 2))
    points = [curve[len(curve) * i // 12] for i in range(12)] if curve else []
    print(f"{part}: seconds {' '.join('%.0f' % at[0] for at in points)}; viewer MiB {' '.join(str(at[1]) for at in points)}, at most {most_memory};"
          f" recording MiB {' '.join(str(at[2]) for at in points)}, at most {most_size}", flush=True)
    made = [line.split() for line in text.splitlines() if line.startswith("MADE")]
    at = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        report = json.loads(text[at:])
    except ValueError:
        report = {}
    if not made or not report:
        return check(f"{part}: it ran and was reported", False, f"exit {child.returncode}")
    launched, took = int(made[-1][1]), float(made[-1][2])
    health, gone = report["health"], report.get("let_go") or {}
    losses = health["dropped"] + health["lost"] + health["unknown"] + sum(health["rejected"].values())
    kernels = sum(device["kernels"] for device in report["devices"])
    rate = health["received"] / took
    check(f"{part}: received records are no fewer than kernels launched", health["received"] + health["dropped"] >= launched, f"{health['received']:,} of {launched:,} kernels and their calls, {rate:,.0f} a second")
    check(f"{part}: kernels are there, let go, or counted as lost", kernels + gone.get("records", 0) + losses >= launched, f"{kernels:,} there, {gone.get('records', 0):,} records let go, {losses:,} lost")
    check(f"{part}: nothing lost", losses == 0, f"{losses:,}")
    check(f"{part}: the recording stays within 512 MiB", most_size <= 520, f"{most_size} MiB at most")
    check(f"{part}: the viewer stays within --memory", most_memory <= MEMORY_MIB, f"{most_memory} MiB of {MEMORY_MIB}")
    if part == "soak":
        check("soak: 10^5 records a second", rate >= 1e5, f"{rate:,.0f}")
        # The program began after this clock did: all of this is while it ran.
        thirds = [[at for at in curve if took * i / 3 <= at[0] < took * (i + 1) / 3] for i in (1, 2)]
        for i, what in (1, "viewer"), (2, "recording"):
            before, last = (max((at[i] for at in third), default=0) for third in thirds)
            check(f"soak: the {what} is flat", 0 < last <= 1.1 * before, f"{before} MiB at most in the second third, {last} in the last")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--part", choices=["soak", "burst", "graphs"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        for part in [args.part] if args.part else ["soak", "burst", "graphs"]:
            run(args.cuptop, program, part, 10_000_000, args.seconds)
    print()
    for ok, what, detail in TABLE:
        print(f"{'pass' if ok else 'FAIL'}  {what}  {detail}")
    sys.exit(0 if TABLE and all(ok for ok, _, _ in TABLE) else 1)


main()
