#!/usr/bin/env python3
"""Whether cuptop names the source line that the GPU waits for, on a real GPU. What looking for it costs: `../cost.py`.

usage: lines.py CUPTOP [--seconds S]             (needs python3 with torch, and a GPU)
       lines.py --loop NAME --seconds S          (one of the loops by itself: what is traced)

Four training loops wait at a line of their own, marked "# WAITS" below: a slow loader (in its worker processes too), `.item()` in
the loop, Python between launches, a blocking `.cpu()`. Each runs under `cuptop trace --headless --json`; the first of the
report's `lines` has to be the marked one, a cause of the idle time names it, and so does a verdict that blames the host.
The last line says how many checks failed; so does the exit status.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()


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


LOOPS = {"loader": loader, "item": item, "python": python, "copies": copies}


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


def trace(cuptop, name, seconds):
    command = [cuptop, "trace", "--headless", "--json", "--", sys.executable, str(HERE)]
    command += ["--loop", name, "--seconds", seconds]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--loop", choices=LOOPS)
    parser.add_argument("--seconds", type=float, default=4, help="of a loop")
    options = parser.parse_args()
    if options.loop:
        return loop(options.loop, options.seconds)
    if not options.cuptop:
        parser.error("say where cuptop is")
    rows = names_lines(options.cuptop, options.seconds)
    if rows:
        print("\nloop      first line           share  samples  torn")
    for name, first, part, samples, torn in rows:
        print(f"{name:9} {first:20} {part:>5}  {samples:7}  {torn:>4}")
    print(f"{len(FAILED)} checks failed")
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
