#!/usr/bin/env python3
"""Whether cuptop names the source line that the GPU waits for, and what looking for it costs, on a real GPU.

usage: lines.py CUPTOP [--blocks N] [--seconds S] [--only lines|cost]      (needs python3 with torch, and a GPU)
       lines.py --loop NAME --seconds S [--blocks N]                       (one of the loops by itself: what is traced)

Four training loops wait at a line of their own, marked "# WAITS" below: a slow loader (in its worker processes too), `.item()` in
the loop, Python between launches, a blocking `.cpu()`. Each runs under `cuptop trace --headless --json`; the first of the
report's `lines` has to be the marked one, a cause of the idle time names it, and so does a verdict that blames the host.

Then one traced program that is bound by its launches has cuptop look from outside in some blocks of time and not in others (it
sends SIGUSR2 to cuptop, which pauses looking and goes on with it), in the order on, off, off, on, ...: once with Python stacks alone,
once with the hardware alone. The difference of neighbouring blocks with its 95 % interval, whose upper bound should not exceed 2 %.
The last line says how many checks failed; so does the exit status.
"""
import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
# Blocks in which cuptop looks from outside, and in which it does not: whatever drifts slowly falls on both alike.
ORDER = ["on", "off", "off", "on"]
# How long a switch may take to be noticed (cuptop: 5 ms, its threads: 20 ms), and what is under way to end.
SETTLE = 0.2


def loader(torch, model, seconds):
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 30

        def __getitem__(self, index):
            time.sleep(0.004)
            return torch.randn(256)

    until = time.monotonic() + seconds
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=1))
    while time.monotonic() < until:
        batch = next(batches)  # WAITS loader
        model(batch.cuda())
        model(batch.cuda())


def item(torch, model, seconds):
    until = time.monotonic() + seconds
    batch = torch.randn(256, 256, device="cuda")
    total = 0.0
    while time.monotonic() < until:
        losses = model(batch).sum(1)
        for at in range(256):
            total += losses[at].item()  # WAITS item
    return total


def python(torch, model, seconds):
    until = time.monotonic() + seconds
    batch = torch.randn(4096, 256, device="cuda")
    while time.monotonic() < until:
        model(batch)
        words = [str(number) for number in range(60_000)]  # WAITS python
        del words


def copies(torch, model, seconds):
    until = time.monotonic() + seconds
    batch = torch.randn(16384, 256, device="cuda")
    while time.monotonic() < until:
        out = model(batch)
        kept = out.cpu().tolist()  # WAITS copies
        del kept


def launches(torch, model, seconds, blocks=0):
    """Training steps of a small model, bound by their launches: what watching costs shows here first. With blocks, prints for each
    whether cuptop was to look, its steps, the mean and the median time of a step in us."""
    batch = torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()

    def steps(seconds):
        begin = time.perf_counter()
        until, times = begin + seconds, []
        while begin < until:
            step()
            now = time.perf_counter()
            times.append(now - begin)
            begin = now
        return times

    if not blocks:
        return steps(seconds)
    # Clocks and allocators settle first.
    steps(2 * seconds)
    looks = "on"
    for block in range(blocks):
        wanted = ORDER[block % len(ORDER)]
        if wanted != looks:
            os.kill(os.getppid(), signal.SIGUSR2)
            looks = wanted
        steps(SETTLE)
        times = steps(seconds)
        print(f"block {wanted} {len(times)} {statistics.mean(times) * 1e6:.3f} {statistics.median(times) * 1e6:.3f}", flush=True)


LOOPS = {"loader": loader, "item": item, "python": python, "copies": copies, "launches": launches}


def loop(name, seconds, blocks):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
    LOOPS[name](torch, model, seconds, *([blocks] if name == "launches" else []))
    torch.cuda.synchronize()


FAILED = []


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + detail if detail else ''}", flush=True)
    if not ok:
        FAILED.append(what)


def trace(cuptop, name, seconds, *options, blocks=0):
    command = [cuptop, "trace", "--headless", "--json", *options, "--", sys.executable, str(HERE)]
    command += ["--loop", name, "--seconds", seconds, "--blocks", blocks]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=540)
    return done


def report_of(done):
    at = done.stdout.find("{\n")
    return json.loads(done.stdout[at:]) if at >= 0 else {}


def marked(name):
    for number, text in enumerate(HERE.read_text().splitlines(), 1):
        if text.rstrip().endswith(f"# WAITS {name}"):
            return f"{HERE.name}:{number}"
    raise SystemExit(f"no line is marked for {name}")


def names_lines(cuptop, seconds):
    rows = []
    for name in ["loader", "item", "python", "copies"]:
        done = trace(cuptop, name, seconds)
        report = report_of(done)
        devices = report.get("lines") or [{}]
        lines = devices[0].get("lines", [])
        # Importing torch and making the model lie before the first operation: no gap of the device.
        first = lines[0]["place"] if lines else "nothing"
        share = lines[0]["share"] if lines else 0
        check(f"{name}: the line is named first", first == marked(name), f"{first}, expected {marked(name)}")
        causes = [it.get("line") or {} for device in report.get("devices", []) for it in device.get("idle", [])]
        named = [it.get("place") for it in causes]
        check(f"{name}: a cause of idle time names it", marked(name) in named, str([it for it in named if it][:3]))
        verdict = (report.get("verdicts") or [{}])[0]
        # A loop that is bound by its copies or kernels has no line to blame.
        is_waiting = verdict.get("bound_by") in ("host", "launch", "sync")
        check(f"{name}: the verdict names it, if the host is to blame", marked(name) in verdict.get("text", "") or not is_waiting, verdict.get("text"))
        sampling = report.get("sampling") or [{}]
        torn = sum(it.get("torn", 0) for it in sampling) / max(1, sum(it.get("looks", 0) for it in sampling))
        rows.append((name, first, f"{share:.0%}", devices[0].get("samples", 0), f"{torn:.1%}"))
        if name == "loader":
            workers = report.get("workers", [])
            busy = [1 - it["waiting"] / it["samples"] for it in workers]
            check("loader: its worker was seen at work", bool(busy) and min(busy) > 0.5, str(workers))
        if done.returncode:
            check(f"{name}: traced", False, done.stderr[-400:])
    return rows


def quantile(df):
    """Student's t, 97.5 %, from the normal distribution's (Cornish and Fisher); off by less than 1 % from five degrees on."""
    z = 1.959964
    return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)


def blocks_of(done):
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("block ")]
    return [(row[1], int(row[2]), float(row[3]), float(row[4])) for row in rows]


def cost(cuptop, what, seconds, count, *options):
    """Looking against not looking in blocks of one run: per cent of a step's time, mean with half its 95 % interval, by means and
    by medians of blocks; and the share of a core that looking took while it was on."""
    done = trace(cuptop, "launches", seconds, *options, blocks=count)
    found, report = blocks_of(done), report_of(done)
    if len(found) != count or done.returncode:
        check(f"{what}: all blocks ran", False, f"{len(found)} of {count}, exit code {done.returncode}: {done.stderr[-600:]}")
        return (what, "-", "-", "-", "-", "-")
    switches = sum(ORDER[at % 4] != ORDER[(at - 1) % 4] for at in range(1, count))
    told = done.stderr.count("looking from outside")
    check(f"{what}: cuptop heard every switch", told == switches, f"{told} of {switches}")
    on = sum(seconds + SETTLE for it in found if it[0] == "on") + 2 * seconds
    if what == "Python stacks":
        sampling = report.get("sampling") or [{}]
        looks = sum(it.get("looks", 0) + it.get("torn", 0) for it in sampling)
        # Importing torch is looked at, too.
        check(f"{what}: looked at while on", looks > 20 * on, f"{looks} looks in {on:.0f} s and the imports")
        share = sum(it.get("cost_ns", 0) for it in sampling) / 1e9 / on
        check(f"{what}: under a tenth of a core", share <= 0.11, f"{share:.1%}")
    else:
        share = report.get("hardware", {}).get("watching", {}).get("core_share")
        check(f"{what}: at most 2 % of a core", share is not None and share <= 0.02, f"{share}")
        share = share or 0
    results = []
    for column in [2, 3]:
        differences = []
        for a, b in zip(found[::2], found[1::2]):
            first, second = (a, b) if a[0] == "on" else (b, a)
            differences.append((first[column] / second[column] - 1) * 100)
        mean = statistics.mean(differences)
        half = quantile(len(differences) - 1) * statistics.stdev(differences) / math.sqrt(len(differences))
        results.append((mean, half))
    (mean, half), (middle, middle_half) = results
    check(f"{what}: costs a launch-bound program at most 2 %", mean + half <= 2, f"{mean:+.2f} ± {half:.2f} % (means), {middle:+.2f} ± {middle_half:.2f} % (medians)")
    step = statistics.median(it[2] for it in found if it[0] == "off")
    return (what, f"{count // 2}", f"{step:.0f}", f"{mean:+.2f} ± {half:.2f} %", f"{middle:+.2f} ± {middle_half:.2f} %", f"{share:.2%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--loop", choices=LOOPS)
    parser.add_argument("--seconds", type=float, default=4, help="of a loop; of a block a quarter of it")
    parser.add_argument("--blocks", type=int, default=40, help="a multiple of 4")
    parser.add_argument("--only", choices=["lines", "cost"])
    options = parser.parse_args()
    if options.loop:
        return loop(options.loop, options.seconds, options.blocks)
    if not options.cuptop or options.blocks % 4 or options.blocks < 12:
        parser.error("say where cuptop is; blocks come in fours, and 12 at least")
    rows = names_lines(options.cuptop, options.seconds) if options.only != "cost" else []
    costs = []
    if options.only != "lines":
        block = options.seconds / 4
        costs.append(cost(options.cuptop, "Python stacks", block, options.blocks, "--hardware", "off"))
        costs.append(cost(options.cuptop, "hardware", block, options.blocks, "--python", "off"))
    if rows:
        print("\nloop      first line           share  samples  torn")
    for name, first, part, samples, torn in rows:
        print(f"{name:9} {first:20} {part:>5}  {samples:7}  {torn:>4}")
    if costs:
        print(f"\n{'looked at':14} {'pairs':>5} {'step us':>8}  {'by means (95 %)':>18}  {'by medians':>18}  {'of a core':>9}")
    for what, pairs, step, means, medians, share in costs:
        print(f"{what:14} {pairs:>5} {step:>8}  {means:>18}  {medians:>18}  {share:>9}")
    print(f"{len(FAILED)} checks failed")
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
