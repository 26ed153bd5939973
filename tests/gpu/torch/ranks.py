#!/usr/bin/env python3
"""One late rank of two: is it found, with its share, its steps and its cost? Needs two GPUs, torchrun and the cuptop binary.

usage: ranks.py CUPTOP [OUT_DIR]

Each case runs `cuptop trace --headless --save DIR -- torchrun --nproc_per_node 2 ranks.py --child CASE`, and once more without its
mistake (its cure), and asks `cuptop report DIR --json`. The truth is the child's own: rank 0 prints the mean time of a step.

  even     nobody is late
  third    rank 1 sleeps 3 ms before the forward pass of every third step
  loader   rank 1's loader takes 6 ms on every step
  python   rank 1's Python is busy for 4 ms between forward and backward pass on every step

The job without a mistake runs before each of them and at the end; a cure is compared with the mean of the two around it, and
how far apart those are is printed.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS, WARMUP = 60, 10
LATE_S = {"third": 0.003, "loader": 0.006}


def child(case):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    layers = [m for _ in range(6) for m in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
    net = DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), bucket_cap_mb=64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    data = torch.randn(2048, 4096, device="cuda")

    def load(step):
        is_late = rank == 1 and (case == "loader" or case == "third" and step % 3 == 1)
        if is_late:
            time.sleep(LATE_S[case])
        return data

    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
        loss = net(load(step)).square().mean()
        if rank == 1 and case == "python":
            until = time.perf_counter() + 0.004
            while time.perf_counter() < until:
                pass
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"STEP_MS {(time.perf_counter() - began) / STEPS * 1e3:.4f}", flush=True)
    dist.destroy_process_group()


def run(cuptop, case, directory):
    command = [cuptop, "trace", "--headless", "--save", str(directory), "--"]
    command += ["torchrun", "--standalone", "--nproc_per_node", "2", __file__, "--child", case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    both = done.stdout + done.stderr
    times = [line.split("STEP_MS ")[1].split()[0] for line in both.splitlines() if "STEP_MS " in line]
    if done.returncode or not times:
        sys.exit(f"{case}: exit {done.returncode}, no time of a step\n{both[-3000:]}")
    report = subprocess.run([cuptop, "report", str(directory), "--json"], capture_output=True, text=True, check=True)
    (directory.parent / f"{directory.name}.json").write_text(report.stdout)
    return float(times[0]), json.loads(report.stdout)


def main():
    cuptop = sys.argv[1]
    out = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="ranks-"))
    out.mkdir(parents=True, exist_ok=True)
    stamp = f"{time.time_ns():x}"
    even_ms, even = run(cuptop, "even", out / f"even-{stamp}-0")
    rows, bad = [], []

    def check(what, measured, wanted, is_fine):
        rows.append((what, measured, wanted, "ok" if is_fine else "MISSED"))
        bad.extend([] if is_fine else [what])

    residual = even.get("job", {}).get("residual_ns")
    check("even: ranks with numbers", [r["rank"] for r in even.get("ranks", [])], [0, 1],
          [r["rank"] for r in even.get("ranks", [])] == [0, 1])
    check("even: residual, us", residual and residual / 1e3, "< 100", bool(residual) and residual < 100_000)
    for i, case in enumerate(("third", "loader", "python"), 1):
        late_ms, report = run(cuptop, case, out / f"{case}-{stamp}")
        before_ms, (even_ms, _) = even_ms, run(cuptop, "even", out / f"even-{stamp}-{i}")
        cured_ms = (before_ms + even_ms) / 2
        first = next(iter(report.get("job", {}).get("late", [])), None)
        if late_ms < 1.01 * cured_ms:
            # What costs less than a hundredth is not worth a line.
            check(f"{case}: nobody is told of, a step takes {late_ms:.3f} against", first and first["text"], f"{cured_ms:.3f}", first is None)
            continue
        check(f"{case}: late rank", first and first["rank"], 1, bool(first) and first["rank"] == 1)
        if not first:
            continue
        wanted = {"third": "by turns"}.get(case, "steady")
        check(f"{case}: pattern", first["pattern"], wanted, first["pattern"] == wanted)
        reason = first["reason"] or "unknown"
        check(f"{case}: reason", reason[:60], "idle, host work", "idle" in reason and "nccl" not in reason)
        if case == "third" and first["late_steps"]:
            late, of = first["late_steps"]
            check("third: share of late steps", f"{late} of {of}", "1/3", abs(late / of - 1 / 3) < 0.05)
        if first["step_ns"]:
            predicted = (first["step_ns"] - first["step_without_ns"]) / 1e6
            measured = late_ms - cured_ms
            off = predicted / measured - 1 if measured else float("inf")
            # Two runs of one thing differ; nothing finer than that can be told.
            floor = abs(before_ms - even_ms)
            is_near = abs(predicted - measured) <= max(0.1 * measured, floor)
            check(f"{case}: cure saves, ms a step", f"{predicted:.3f} ({off:+.1%}; without a mistake {floor:.3f} apart)",
                  f"{measured:.3f} +- 10 %", is_near)
        print(f"{case}: {first['text']}")
    print(f"\nthe last steps without a mistake: {even_ms:.3f} ms; recordings in {out}")
    for what, measured, wanted, verdict in rows:
        print(f"{what:32} {measured!s:62} {wanted!s:16} {verdict}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    elif len(sys.argv) < 2:
        sys.exit(__doc__)
    else:
        main()
