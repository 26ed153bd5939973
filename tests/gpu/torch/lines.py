#!/usr/bin/env python3
"""Whether cuptop names the source line that the GPU waits for, and what looking for it costs, on a real GPU.

usage: lines.py CUPTOP [--blocks N] [--seconds S]      (needs python3 with torch, and a GPU)
       lines.py --loop NAME --seconds S                (one of the loops by itself: what is traced)

Four training loops wait at a line of their own, marked "# WAITS" below: a slow loader (in its worker processes too), `.item()` in
the loop, Python between launches, a blocking `.cpu()`. Each runs under `cuptop trace --headless --json`; the first of the
report's `lines` has to be the marked one. Then one loop that is bound by its launches runs in alternating blocks with
`--python 100` and `--python off`: the difference of their step times with its 95 % interval, whose upper bound should not
exceed 2 %. The last line says how many checks failed; so does the exit status.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
# Student's t, 97.5 %, by degrees of freedom.
T = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


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


def launches(torch, model, seconds):
    """Small kernels one after the other: what watching costs shows here first. Prints the median time of a step in us."""
    x = torch.ones(1024, device="cuda")
    until, times = time.monotonic() + seconds, []
    while time.monotonic() < until:
        begin = time.perf_counter()
        for _ in range(200):
            x = x * 1.0000001
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print(f"step_us {statistics.median(times[len(times) // 5:]) * 1e6:.3f}")


LOOPS = {"loader": loader, "item": item, "python": python, "copies": copies, "launches": launches}


def loop(name, seconds):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
    LOOPS[name](torch, model, seconds)
    torch.cuda.synchronize()


FAILED = []


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + detail if detail else ''}", flush=True)
    if not ok:
        FAILED.append(what)


def trace(cuptop, name, seconds, *options):
    command = [cuptop, "trace", "--headless", "--json", *options, "--", sys.executable, str(HERE)]
    command += ["--loop", name, "--seconds", str(seconds)]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
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


def cost(cuptop, seconds, blocks):
    """Differences of neighbouring blocks in per cent of the one without."""
    def step(option):
        done = trace(cuptop, "launches", seconds, "--python", option)
        for word in done.stdout.splitlines():
            if word.startswith("step_us "):
                sampling = report_of(done).get("sampling") or [{}]
                return float(word.split()[1]), sum(it.get("cost_ns", 0) for it in sampling) / 1e9 / seconds
        raise SystemExit(f"no step time: {done.stdout[-300:]} {done.stderr[-300:]}")

    differences, shares = [], []
    for block in range(blocks):
        order = ["100", "off"] if block % 2 else ["off", "100"]
        times = {option: step(option) for option in order}
        differences.append((times["100"][0] / times["off"][0] - 1) * 100)
        shares.append(times["100"][1])
    mean = statistics.mean(differences)
    half = T.get(blocks - 1, 1.96) * statistics.stdev(differences) / blocks**0.5
    check("sampling costs a launch-bound program at most 2 %", mean + half <= 2, f"{mean:+.2f} ± {half:.2f} %")
    check("sampling stays under a tenth of a core", max(shares) <= 0.11, f"{max(shares):.1%}")
    return mean, half, statistics.mean(shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--loop", choices=LOOPS)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--blocks", type=int, default=6)
    options = parser.parse_args()
    if options.loop:
        return loop(options.loop, options.seconds)
    if not options.cuptop:
        parser.error("say where cuptop is")
    rows = names_lines(options.cuptop, options.seconds)
    mean, half, share = cost(options.cuptop, options.seconds, max(2, options.blocks))
    print("\nloop      first line           share  samples  torn")
    for name, first, part, samples, torn in rows:
        print(f"{name:9} {first:20} {part:>5}  {samples:7}  {torn:>4}")
    print(f"sampling at 100 Hz: step time {mean:+.2f} ± {half:.2f} % (95 %), {share:.1%} of a core outside the program")
    print(f"{len(FAILED)} checks failed")
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
