#!/usr/bin/env python3
"""Two ranks on two GPUs, of which one is late: is that found, with its share, its steps, its cause and its cost?

usage: ranks.py CUPTOP [OUT_DIR] [--seconds 450] [--only CASE,…]
       ranks.py CUPTOP --again DIR [--only CASE,…]    asks the same of what an earlier call left (OUT_DIR/TIME); needs no GPU

Needs two GPUs, PyTorch with torchrun, and the cuptop binary; no network. Each job runs as `cuptop trace --headless --save DIR -- torchrun
--nproc_per_node 2 ranks.py --child JOB`, and `cuptop report DIR --json` is held to what the job's own processes measured:
when each step began, how long the late one slept, and the mean time of a step. A table comes last, the exit status is 1 when a check failed.

  exact      rank 1 sleeps 3 ms on every third step; kernels that spin: each late step is to be found within 0.1 ms
  third      DDP; rank 1 sleeps 3 ms before the forward pass of every third step
  loader     DDP; rank 1's loader takes 6 ms on every step (both: --only ddp)
  clocks     DDP under torch.profiler: the same two traces, with one shifted by 1.7 ms and 20 ppm, and by two hours as well
and programs that nothing was fitted to:
  tensor     tensor parallel, 8 all-reduces a step that block; rank 0's Python is busy for 2 ms in every step
  fsdp       FSDP (all-gather, reduce-scatter); rank 1's batches are a quarter larger; recorded by a cuptop in each rank
  accumulate DDP, four micro-batches a step, three of them under no_sync; rank 1's loader takes 2 ms for each
  zero       two communicators, all-gather on the one and reduce-scatter on the other; rank 0's Python is busy for 4 ms on every fourth step
  pipeline   two stages with send and receive; rank 1's stage is twice the work: nobody is to be blamed by collectives

What it costs is compared with the same job without its mistake: in the same process (third, accumulate, zero: 30 steps without, 60 with
and 30 without), for how long a host takes between two steps differs between processes by a tenth of a millisecond; else in jobs
of their own (`-even`), before and after. Jobs that did not fit into --seconds are named as left out, and count as failed.
"""
import argparse
import bisect
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS, WARMUP = 60, 10
# Of a job that is its own twin: steps without its mistake before those with it, and as many behind.
EVEN = 30
# Which step is late, of every third.
TURN = 1


def is_third(step):
    return step % 3 == TURN


# The jobs: what each rank runs.

class Steps:
    """What a rank knows of its own steps: when each began, when its first kernel behind what may hold it up was queued, and how long that held it up."""

    def __init__(self):
        self.began, self.queued, self.slept = [], [], []
        self.is_held_up = True

    def begin(self):
        self.began.append(time.time_ns())
        self.queued.append(0)
        self.slept.append(0.0)

    def first_queued(self):
        self.queued[-1] = self.queued[-1] or time.time_ns()

    def sleep(self, seconds):
        before = time.perf_counter()
        time.sleep(seconds)
        self.slept[-1] += (time.perf_counter() - before) * 1e3

    def spin(self, seconds):
        before = time.perf_counter()
        while time.perf_counter() < before + seconds:
            pass
        self.slept[-1] += (time.perf_counter() - before) * 1e3


def exact(rank, mistake, steps):
    import torch
    import torch.distributed as dist
    gradients = torch.ones(16 << 20, device="cuda")

    def step(number):
        if mistake and rank == 1 and is_third(number):
            steps.sleep(0.003)
        torch.cuda._sleep(4_000_000)
        steps.first_queued()
        dist.all_reduce(gradients)
        torch.cuda._sleep(500_000)
        torch.cuda.synchronize()
    return step


def ddp(rank, case, steps):
    import torch
    from torch.nn.parallel import DistributedDataParallel
    layers = [m for _ in range(6) for m in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
    net = DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), bucket_cap_mb=64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    data = torch.randn(2048, 4096, device="cuda")
    net.module[0].register_forward_hook(lambda *_: steps.first_queued())

    def load(number):
        if rank == 1 and case == "third" and steps.is_held_up and is_third(number):
            steps.sleep(0.003)
        if rank == 1 and case == "loader":
            steps.sleep(0.006)
        return data

    def step(number):
        loss = net(load(number)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()
    return step


def tensor(rank, mistake, steps):
    import torch
    import torch.distributed as dist
    # Columns of the one matrix and rows of the other on each rank, as Megatron has it; the way back has the same all-reduces.
    blocks = [(torch.randn(4096, 4096, device="cuda") / 64, torch.randn(4096, 4096, device="cuda") / 64) for _ in range(4)]
    data = torch.randn(1024, 4096, device="cuda")

    def step(number):
        x = data
        for way in range(2):
            for block in blocks:
                x = torch.relu(x @ block[0]) @ block[1]
                dist.all_reduce(x)
                x = x / (x.norm() + 1)
            if way == 0 and mistake and rank == 0:
                # Nothing is queued ahead: the host has just read a number.
                x[0, 0].item()
                steps.spin(0.002)
            elif way == 0:
                x[0, 0].item()
        x[0, 0].item()
    return step


def fsdp(rank, mistake, steps):
    import torch
    from torch.distributed.fsdp import fully_shard
    layers = [torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()) for _ in range(6)]
    net = torch.nn.Sequential(*layers).cuda()
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    tokens = 5120 if mistake and rank == 1 else 4096
    data = torch.randn(tokens, 4096, device="cuda")

    def step(number):
        loss = net(data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    return step


def accumulate(rank, steps):
    import contextlib
    import torch
    from torch.nn.parallel import DistributedDataParallel
    layers = [m for _ in range(6) for m in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
    net = DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), bucket_cap_mb=64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    data = torch.randn(512, 4096, device="cuda")

    def step(number):
        optimizer.zero_grad(set_to_none=True)
        for micro in range(4):
            if rank == 1 and steps.is_held_up:
                steps.sleep(0.002)
            with net.no_sync() if micro < 3 else contextlib.nullcontext():
                loss = net(data).square().mean()
                loss.backward()
            # As one logs it: nothing is queued ahead of the next batch.
            loss.item()
        optimizer.step()
        torch.cuda.synchronize()
    return step


def zero(rank, steps):
    import torch
    import torch.distributed as dist
    gather, reduce = dist.new_group(), dist.new_group()
    size = 4096
    shards = [torch.randn(size // 2, size, device="cuda") / 64 for _ in range(6)]
    whole = [torch.empty(size, size, device="cuda") for _ in shards]
    gradients = [torch.empty(size // 2, size, device="cuda") for _ in shards]
    data = torch.randn(1024, size, device="cuda")

    def step(number):
        inputs = [data]
        for shard, weight in zip(shards, whole):
            dist.all_gather_into_tensor(weight, shard, group=gather)
            inputs.append(torch.relu(inputs[-1] @ weight))
        norm = inputs[-1].norm().item()
        if rank == 0 and steps.is_held_up and number % 4 == 2:
            steps.spin(0.004)
        back = inputs[-1] / (norm + 1)
        for layer in reversed(range(len(shards))):
            dist.reduce_scatter_tensor(gradients[layer], inputs[layer].T @ back, group=reduce)
            steps.first_queued()
            back = back @ whole[layer].T
        for shard, gradient in zip(shards, gradients):
            shard.add_(gradient, alpha=-1e-9)
        torch.cuda.synchronize()
    return step


def pipeline(rank, mistake, steps):
    import torch
    import torch.distributed as dist
    layers = 4 if rank == 0 else 8
    weights = [torch.randn(4096, 4096, device="cuda") / 64 for _ in range(layers)]
    data = torch.randn(1024, 4096, device="cuda")
    received = torch.empty_like(data)

    def stage(x):
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    def step(number):
        for _ in range(4):
            if rank == 0:
                dist.send(stage(data), 1)
                dist.recv(received, 1)
            else:
                dist.recv(received, 0)
                dist.send(stage(received), 0)
            stage(received)
        torch.cuda.synchronize()
    return step


JOBS = {
    "exact": lambda rank, steps: exact(rank, True, steps),
    "even": lambda rank, steps: ddp(rank, "even", steps),
    "third": lambda rank, steps: ddp(rank, "third", steps),
    "loader": lambda rank, steps: ddp(rank, "loader", steps),
    "clocks": lambda rank, steps: ddp(rank, "even", steps),
    "tensor": lambda rank, steps: tensor(rank, True, steps),
    "tensor-even": lambda rank, steps: tensor(rank, False, steps),
    "fsdp": lambda rank, steps: fsdp(rank, True, steps),
    "fsdp-even": lambda rank, steps: fsdp(rank, False, steps),
    "accumulate": accumulate,
    "zero": zero,
    "pipeline": lambda rank, steps: pipeline(rank, True, steps),
}
# Those that are their own twins.
TWINS = {"third", "accumulate", "zero"}


def child(name, out):
    import torch
    import torch.distributed as dist
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    steps = Steps()
    step = JOBS[name](rank, steps)

    def all_steps(count, first=0):
        for number in range(first, first + count):
            steps.begin()
            step(number)
        return first + count

    steps.is_held_up = name not in TWINS
    all_steps(WARMUP)
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    began = time.perf_counter()
    if name == "clocks":
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            all_steps(STEPS, WARMUP)
            torch.cuda.synchronize()
        profiler.export_chrome_trace(os.path.join(out, f"rank{rank}.json"))
    else:
        last = WARMUP
        for count, steps.is_held_up in [(EVEN, False), (STEPS, True), (EVEN, False)] if name in TWINS else [(STEPS, True)]:
            last = all_steps(count, last)
        torch.cuda.synchronize()
    took = time.perf_counter() - began
    mean = took / (len(steps.began) - WARMUP) * 1e3
    written = dict(step_ms=mean, began_ns=steps.began, queued_ns=steps.queued, slept_ms=steps.slept, warmup=WARMUP)
    Path(out, f"truth{rank}.json").write_text(json.dumps(written))
    dist.barrier()
    dist.destroy_process_group()


# What is asked of cuptop.

class Missing(Exception):
    """A job did not run."""


def ask(cuptop, *paths):
    done = subprocess.run([cuptop, "report", *map(str, paths), "--json"], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Missing(f"cuptop report: exit {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def launch(cuptop, name, out, how):
    """Runs a job; returns the mean time of a step and what each rank knows."""
    out.mkdir(parents=True)
    torchrun = ["torchrun", "--standalone", "--nproc_per_node", "2"]
    program = [__file__, "--child", name, str(out)]
    record = [cuptop, "trace", "--headless", "--save", str(out / "recorded"), "--"]
    command = {
        "outside": record + torchrun + program,
        "inside": torchrun + ["--no-python", *record, sys.executable, *program],
        "bare": torchrun + program,
    }[how]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    except subprocess.TimeoutExpired:
        raise Missing("it took more than 150 s") from None
    if done.returncode or not all((out / f"truth{rank}.json").exists() for rank in range(2)):
        raise Missing(f"exit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    truths = read_truths(out)
    return truths[0]["step_ms"], truths


def read_truths(out):
    return [json.loads((out / f"truth{rank}.json").read_text()) for rank in range(2)]


class Table:
    def __init__(self):
        self.rows, self.bad, self.began = [], 0, time.monotonic()

    def check(self, what, measured, wanted, is_fine):
        self.rows.append((what, str(measured), str(wanted), "ok" if is_fine else "MISSED"))
        self.bad += not is_fine

    def note(self, what, measured):
        self.rows.append((what, str(measured), "", ""))

    def print(self):
        wide = [max(len(row[i]) for row in self.rows) for i in range(3)] if self.rows else [0, 0, 0]
        for row in self.rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, wide)), row[3], sep="  ")
        print(f"{self.bad} of {sum(bool(row[3]) for row in self.rows)} checks missed, {time.monotonic() - self.began:.0f} s")


class Run:
    """The jobs, as they are run one after the other; or as an earlier call left them."""

    def __init__(self, cuptop, out, seconds, again=None):
        self.cuptop, self.out = cuptop, out
        self.until = time.monotonic() + seconds
        self.count = 0
        self.left = sorted(path for path in again.iterdir() if path.is_dir()) if again else None

    def job(self, name, how="outside"):
        """The mean time of a step, what each rank knows, the report and where all of it lies."""
        before = time.monotonic()
        if self.left is not None:
            out = next((path for path in self.left if path.name.split("-", 1)[-1] == name), None)
            if out is None:
                raise Missing(f"no {name} is left of an earlier call")
            self.left.remove(out)
            truths = read_truths(out)
            step_ms = truths[0]["step_ms"]
        else:
            if before > self.until:
                raise Missing("left out: the time is over")
            self.count += 1
            out = self.out / f"{self.count:02}-{name}"
            step_ms, truths = launch(self.cuptop, name, out, how)
        report = None if how == "bare" else ask(self.cuptop, out / "recorded")
        if report and self.left is None:
            (out / "report.json").write_text(json.dumps(report, indent=1))
        print(f"{name}: a step takes {step_ms:.3f} ms ({time.monotonic() - before:.0f} s)", flush=True)
        return step_ms, truths, report, out


def first_late(report):
    return next(iter((report.get("job") or {}).get("late", [])), None)


def nobody(table, what, report):
    """Nobody is late, or by no more than two GPUs of a kind differ."""
    late = first_late(report)
    little = late and late["step_ns"] and late["step_ns"] - late["step_without_ns"] < 0.03 * late["step_ns"]
    table.check(f"{what}: late", late["text"][:80] if late else "nobody", "nobody", not late or bool(little))


def told(table, name, first, rank, pattern=None):
    """Whether the right rank is late in the right way; none is right where cuptop may find steps of its own in a step."""
    table.check(f"{name}: late rank", first and first["rank"], rank, bool(first) and first["rank"] == rank)
    if first:
        print(f"{name}: {first['text']}")
        if pattern:
            table.check(f"{name}: pattern", first["pattern"], pattern, first["pattern"] == pattern)
    return first


def late_steps(table, name, first, truths, late=1):
    """Whether just those steps are named that were held up, and by as much as the rank was behind."""
    truth, other = truths[late], truths[1 - late]
    held = {i for i, ms in enumerate(truth["slept_ms"]) if ms > 0}
    found = {}
    for step in first.get("late_at", []):
        # The host waits for the GPU at the end of a step: a collective lies between two of its begins. CUPTI's clock is the host's.
        found[bisect.bisect(truth["began_ns"], step["start_ns"]) - 1] = step["by_ns"] / 1e6
    # Only steady steps are looked at: what lies before the first of them is warm-up.
    last = len(truth["began_ns"]) - 2
    wanted = {i for i in held if truth["warmup"] <= i <= last}
    seen = {i for i in found if truth["warmup"] <= i <= last}
    # A rank is behind by when it queued its first kernel after the sleep, and not by the sleep alone: from there to the queue Python
    # takes a few tenths of a millisecond, never the same. Both tell it by the clock of their host.
    has_queued = bool(truth.get("queued_ns", [0])[-1])
    off_by = lambda i: found[i] - (truth["queued_ns"][i] - other["queued_ns"][i]) / 1e6
    # A host that is taken away for a while makes a rank late that did not sleep.
    by_chance = {i for i in seen - wanted if has_queued and abs(off_by(i)) <= 0.1}
    others = seen - wanted - by_chance
    told = f"{len(seen & wanted)} of {len(wanted)}, {len(others)} others, {len(by_chance)} that were late by chance"
    table.check(f"{name}: late steps are those that slept", told, "all, 0 others", wanted <= seen and not others)
    total = len(truth["began_ns"])
    count, of = first["late_steps"] or (0, 1)
    table.check(f"{name}: share of late steps", f"{count} of {of}", f"{len(held)} of {total}", abs(count / of - len(held) / total) < 0.05)
    if not has_queued:
        return
    off = [off_by(i) for i in sorted(seen & wanted)]
    if off:
        near = sum(abs(ms) <= 0.1 for ms in off)
        text = f"{near} of {len(off)}; off by {statistics.median(off):+.3f} ms (median), {min(off):+.3f} to {max(off):+.3f}"
        table.check(f"{name}: steps found within 0.1 ms", text, "all", near == len(off))


def cure(table, name, first, late_ms, evens):
    """Whether the saving is that which the job without its mistake has."""
    measured = late_ms - statistics.mean(evens)
    # Two runs of one thing differ; nothing finer than that can be told.
    floor = max(evens) - min(evens)
    if not first or not first["step_ns"]:
        table.check(f"{name}: cure saves, ms a step", "unknown", f"{measured:.3f}", False)
        return
    # By the part of a step that it says: the steps that it finds may be parts of the job's.
    predicted = late_ms * (1 - first["step_without_ns"] / first["step_ns"])
    off = predicted / measured - 1 if measured > 0 else float("inf")
    table.check(f"{name}: cure saves, ms a step", f"{predicted:.3f} ({off:+.1%}; twins {floor:.3f} apart)", f"{measured:.3f} +- 10 %",
                abs(predicted - measured) <= max(0.1 * measured, floor))


def cure_within(table, name, first, truths):
    """Whether the saving is by what the steps with the mistake took longer than those without it, in the same process."""
    spans = [b - a for a, b in zip(truths[0]["began_ns"], truths[0]["began_ns"][1:])]
    begin = truths[0]["warmup"] + EVEN
    if len(spans) < begin + STEPS:
        raise Missing(f"{name} was recorded before it was its own twin")
    # The first after a change may still be the other kind's.
    parts = spans[begin - EVEN + 1:begin], spans[begin:begin + STEPS], spans[begin + STEPS + 1:]
    before, mistaken, after = (statistics.mean(part) / 1e6 for part in parts)
    measured = mistaken - (before + after) / 2
    if not first or not first["step_ns"]:
        table.check(f"{name}: cure saves, ms a step", "unknown", f"{measured:.3f}", False)
        return
    # All that it saves: only these steps were held up.
    predicted = first["saving_ns"] / 1e6 / STEPS
    table.check(f"{name}: cure saves, ms a step", f"{predicted:.3f} ({predicted / measured - 1:+.1%}; {before:.3f}, {mistaken:.3f}, {after:.3f})", f"{measured:.3f} +- 10 %",
                abs(predicted - measured) <= 0.1 * measured)


def is_host(reason):
    """Its Python line in this file, or idle time that its CPU is the cause of."""
    reason = reason or ""
    return "its CPU is at ranks.py" in reason or "idle" in reason and "nccl" not in reason.lower()


def case_exact(run, table):
    _, truths, report, _ = run.job("exact")
    first = told(table, "exact", first_late(report), 1, "by turns")
    if first:
        table.check("exact: reason", (first["reason"] or "unknown")[:60], "its CPU", is_host(first["reason"]))
        late_steps(table, "exact", first, truths)


def case_ddp(run, table, names=("third", "loader")):
    even_ms, _, even, _ = run.job("even")
    evens = [even_ms]
    ranks = [rank["rank"] for rank in even.get("ranks", [])]
    table.check("even: ranks with numbers", ranks, [0, 1], ranks == [0, 1])
    residual = (even.get("job") or {}).get("residual_ns")
    table.check("even: residual, us", residual and residual / 1e3, "< 100", bool(residual) and residual < 100_000)
    nobody(table, "even", even)
    for name in names:
        late_ms, truths, report, _ = run.job(name)
        first = told(table, name, first_late(report), 1, {"third": "by turns"}.get(name, "steady"))
        if first:
            table.check(f"{name}: reason", (first["reason"] or "unknown")[:60], "its CPU", is_host(first["reason"]))
            if name == "third":
                late_steps(table, name, first, truths)
        if name in TWINS:
            cure_within(table, name, first, truths)
        else:
            evens = [evens[-1], run.job("even")[0]]
            cure(table, name, first, late_ms, evens)


def case_own_twin(run, table, name, late, pattern):
    _, truths, report, _ = run.job(name)
    first = told(table, name, first_late(report), late, pattern)
    if first:
        table.check(f"{name}: reason", (first["reason"] or "unknown")[:60], "its CPU", is_host(first["reason"]))
        if pattern:
            late_steps(table, name, first, truths, late)
    cure_within(table, name, first, truths)


def shifted(source, target, offset_us, ppm, epoch_us=None):
    """A Kineto trace by a clock that is off; returns the first and last time of its collectives, us."""
    trace = json.loads(Path(source).read_text())
    ends = []
    times = [event["ts"] for event in trace["traceEvents"] if "ts" in event]
    origin = min(times) if epoch_us is None else epoch_us
    for event in trace["traceEvents"]:
        if "ts" not in event:
            continue
        if str(event.get("name", "")).startswith("nccl") and event.get("cat") == "kernel":
            ends += [event["ts"], event["ts"] + event["dur"]]
        event["ts"] += offset_us + ppm * 1e-6 * (event["ts"] - origin)
        if "dur" in event:
            event["dur"] *= 1 + ppm * 1e-6
    Path(target).write_text(json.dumps(trace))
    return min(ends), max(ends), origin


def case_clocks(run, table):
    out = run.job("clocks", "bare")[-1]
    plain = [out / "rank0.json", out / "rank1.json"]
    reference = ask(run.cuptop, *plain)

    def clock(report, middle):
        rank = next(rank for rank in report["ranks"] if rank["rank"] == 1)
        return lambda us: us + rank["offset_ns"] / 1e3 + rank["drift_ppm"] * 1e-6 * (us - middle)

    job = reference.get("job") or {}
    table.check("clocks: residual of Kineto's traces, us", job.get("residual_ns") and job["residual_ns"] / 1e3, "< 100", (job.get("residual_ns") or 1e9) < 100_000)
    for what, offset, ppm in (("1.7 ms and 20 ppm", 1_700.0, 20.0), ("2 h, 1.7 ms and -35 ppm", 7_200_001_700.0, -35.0)):
        other = Path(tempfile.mkdtemp(prefix="shifted-")) / "rank1.json"
        first, last, origin = shifted(plain[1], other, offset, ppm)
        move = lambda us: us + offset + ppm * 1e-6 * (us - origin)
        report = ask(run.cuptop, plain[0], other)
        shutil.rmtree(other.parent)
        if len(report.get("ranks", [])) != 2:
            table.check(f"clocks: off by {what}", "not one job", "< 20 us", False)
            continue
        before, after = clock(reference, (first + last) / 2), clock(report, (move(first) + move(last)) / 2)
        off = [after(move(us)) - before(us) for us in (first, (first + last) / 2, last)]
        table.check(f"clocks: off by {what}: recovered within, us", ", ".join(f"{us:+.1f}" for us in off), "< 20", max(map(abs, off)) < 20)


def case_tensor(run, table):
    before = run.job("tensor-even")[0]
    late_ms, _, report, _ = run.job("tensor")
    after = run.job("tensor-even")[0]
    # Each of its layers is a step to who only sees kernels.
    first = told(table, "tensor", first_late(report), 0)
    if first:
        table.check("tensor: reason", (first["reason"] or "unknown")[:60], "its CPU", is_host(first["reason"]))
    cure(table, "tensor", first, late_ms, [before, after])


def case_fsdp(run, table):
    even = run.job("fsdp-even", "inside")[2]
    nobody(table, "fsdp-even", even)
    report = run.job("fsdp", "inside")[2]
    ranks = [rank["rank"] for rank in report.get("ranks", [])]
    table.check("fsdp: ranks, recorded by a cuptop each", ranks, [0, 1], ranks == [0, 1])
    first = told(table, "fsdp", first_late(report), 1, "steady")
    if first:
        # Other shapes are other kernels: it has more to do, and idles no more than the other.
        reason = first["reason"] or "unknown"
        table.check("fsdp: reason", reason[:60], "more work in kernels", "kernels" in reason and "idle" not in reason)


def case_pipeline(run, table):
    report = run.job("pipeline")[2]
    nobody(table, "pipeline", report)
    judged = [(rank["collectives"], rank["not_judged"]) for rank in report.get("ranks", [])]
    # Eight sends or receives a step, of each rank.
    table.check("pipeline: sends are counted and not judged", judged, ">= 480 not judged", len(judged) == 2 and all(few < 10 and many >= 480 for few, many in judged))


CASES = {"exact": case_exact, "ddp": case_ddp, "clocks": case_clocks, "tensor": case_tensor, "fsdp": case_fsdp,
         "accumulate": lambda run, table: case_own_twin(run, table, "accumulate", 1, None),
         "zero": lambda run, table: case_own_twin(run, table, "zero", 0, "by turns"), "pipeline": case_pipeline}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--seconds", type=float, default=450, help="no job begins later than this")
    parser.add_argument("--again", type=Path, help="the directory of an earlier call: what is in it is asked about again")
    parser.add_argument("--only", default=",".join(CASES), help="cases, with commas: " + ", ".join(CASES))
    args = parser.parse_args()
    out = args.again
    if not out:
        out = Path(args.out or tempfile.mkdtemp(prefix="ranks-")).resolve()
        # A directory of earlier recordings would make one job of all of them.
        out = out / time.strftime("%H%M%S")
        out.mkdir(parents=True)
    table = Table()
    run = Run(os.path.abspath(args.cuptop), out, args.seconds, args.again)
    for name in args.only.split(","):
        try:
            CASES[name](run, table)
        except Missing as error:
            print(f"{name}: {error}", flush=True)
            table.check(f"{name}: ran", str(error).splitlines()[0][:60], "to its end", False)
        except Exception as error:  # A report without a field is a defect of cuptop's or of this script's: the other cases go on.
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            table.check(f"{name}: ran", f"{type(error).__name__}: {error}"[:60], "to its end", False)
    print(f"\nrecordings and reports in {out}")
    table.print()
    sys.exit(1 if table.bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main()
