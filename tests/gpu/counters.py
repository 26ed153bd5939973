#!/usr/bin/env python3
"""Counters sampled beside a program, against ncu, and what that costs, on a real GPU.

usage: counters.py CUPTOP [--out DIR] [--seconds S] [--long S]      (needs PyTorch; ncu where it is there; no network)
       counters.py CUPTOP --only model     (a language model's attention, training step and eager decoding, with transformers: a minute and a half)
       counters.py CUPTOP --only ranks     (two ranks on two GPUs, each sampled beside the other: a minute)

Runs kernels of known character under `cuptop trace --headless --json`: five times by turns with and without `--counters on`; for
60 s with it (--long), which tells the sampler's steady cost apart from its beginning; for 12 s each with `--counters 500`,
5000 and 20000; then a few of each kernel under `ncu --clock-control none --cache-control none`. Compares DRAM % and tensor %
of kernels of at least 100 us with ncu's (5 points), each class with what it must be, the time of each phase with and without
(medians) beside the SM clock, the sampler's part of a core, and the kernels recorded. Stops beginning new work after S seconds
(450). A table comes last, then the number of checks that failed, which is also the exit status.
"""
import argparse, csv, io, json, re, shutil, statistics, subprocess, sys, time
from pathlib import Path

WORK = r"""
import sys, time, torch
few = sys.argv[1] == "few"
seconds = 0 if sys.argv[1] in ("few", "all") else float(sys.argv[1])
torch.backends.cuda.matmul.allow_tf32 = False
A = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
B = torch.randn(4096, 4096, device="cuda")
X = torch.randn(1 << 28, device="cuda"); Y = torch.empty_like(X)
M = torch.randn(12288, 12288, device="cuda"); T = torch.empty_like(M)
S = torch.randn(1 << 14, 1 << 12, device="cuda")
L = torch.randn(64, 1 << 20, device="cuda"); s = torch.randn(256, device="cuda")
def gemm(): A @ A
def fp32(): B @ B
def add(): torch.add(X, 1.0, out=Y)
def transpose(): T.copy_(M.t())
def softmax(): torch.softmax(S, 1)
def rows64(): torch.nn.functional.layer_norm(L, (1 << 20,))
def tiny(): s.add_(1.0)
def mix():
    A[:2048, :2048] @ A[:2048, :2048]; torch.relu(S)
phases = [(gemm, 60), (fp32, 40), (add, 120), (transpose, 60), (softmax, 200), (rows64, 40), (tiny, 4000), (mix, 300)]
for f, _ in phases: f(); f()
torch.cuda.synchronize()
acc, r, begin = {}, 0, time.perf_counter()
while r < (1 if few else 8) or time.perf_counter() - begin < seconds:
    r += 1
    for f, n in phases:
        torch.cuda.synchronize(); a = time.perf_counter()
        for _ in range(2 if few else n): f()
        torch.cuda.synchronize(); acc.setdefault(f.__name__, []).append((time.perf_counter() - a) / n * 1e6)
print("PHASES", {k: sorted(v)[len(v) // 2] for k, v in acc.items()}, flush=True)
"""
MODEL = r"""
import sys, time, torch
from transformers import GPT2Config, GPT2LMHeadModel
what, few = sys.argv[1], sys.argv[2] == "few"
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=1024, n_head=16)).cuda().bfloat16()
q = torch.randn(8, 16, 4096, 64, device="cuda", dtype=torch.bfloat16)
ids = torch.randint(0, 50000, (16, 512), device="cuda"); optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
def attention(): torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
def train():
    model(ids, labels=ids).loss.backward(); optimizer.step(); optimizer.zero_grad()
def decode():
    with torch.no_grad(): model.eval().generate(ids[:4, :32], max_new_tokens=2 if few else 64, do_sample=False, pad_token_id=0)
step = globals()[what]
for _ in range(2): step()
torch.cuda.synchronize(); torch.cuda.profiler.start()
begin = time.perf_counter()
while True:
    step(); torch.cuda.synchronize()
    if few or time.perf_counter() - begin > 8: break
torch.cuda.profiler.stop()
"""
# Rank 0 multiplies, rank 1 streams: each GPU has kernels that the other one has not. Alone, one process does both on its GPU.
RANKS = r"""
import os, sys, time, torch
rank, alone = int(os.environ.get("RANK", 0)), sys.argv[1] != "ranks"
torch.cuda.set_device(rank)
if not alone:
    import torch.distributed as ranks
    ranks.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.backends.cuda.matmul.allow_tf32 = False
A = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16); B = torch.randn(4096, 4096, device="cuda")
X = torch.randn(1 << 28, device="cuda"); Y = torch.empty_like(X); S = torch.randn(1 << 14, 1 << 12, device="cuda")
g = torch.ones(1 << 20, device="cuda")
def gemm(): A @ A
def fp32(): B @ B
def add(): torch.add(X, 1.0, out=Y)
def softmax(): torch.softmax(S, 1)
work = [(gemm, 40), (fp32, 20), (add, 60), (softmax, 200)]
mine = work if alone else work[:2] if rank == 0 else work[2:]
for f, _ in mine: f()
for _ in range(1 if sys.argv[1] == "few" else 40 if alone else 60):
    for f, n in mine:
        for _ in range(2 if sys.argv[1] == "few" else n): f()
    if not alone: ranks.all_reduce(g)
    torch.cuda.synchronize()
if not alone: ranks.destroy_process_group()
"""
# What a kernel must be, by a part of its name and what it does; a class the arithmetic leaves open is not named.
CLASSES = {"add": "memory", "gemm": "compute", "tiny": "launch"}
TABLE, FAILED = [], 0


def check(what, ok, detail=""):
    global FAILED
    FAILED += 0 if ok else 1
    TABLE.append(f"{'pass' if ok else 'FAIL'}  {what}  {detail}")
    print(TABLE[-1], flush=True)


def base(name):
    """The function's own name, without return type, namespaces, template arguments and parameters."""
    name = re.sub(r"\(anonymous namespace\)::|\(unnamed\)::|<unnamed>::", "", name)
    return re.split(r"[<(]", name)[0].split("::")[-1].split(" ")[-1]


def traced(cuptop, out, tag, counters, length="all"):
    folder = out / f"run-{tag}"
    shutil.rmtree(folder, ignore_errors=True)
    command = [cuptop, "trace", "--headless", "--json", "--save", folder, "--python", "off", "--counters", counters, "--", sys.executable, out / "work.py", length]
    done = subprocess.run([str(it) for it in command], capture_output=True, text=True, timeout=240)
    (out / f"{tag}.out").write_text(done.stdout)
    (out / f"{tag}.err").write_text(done.stderr)
    phases = re.search(r"PHASES (\{.*?\})", done.stdout + done.stderr)
    text = done.stdout[done.stdout.find("\n{\n") + 1:] if not done.stdout.startswith("{") else done.stdout
    try:
        return json.loads(text), json.loads(phases[1].replace("'", '"'))
    except (ValueError, TypeError):
        print(f"{tag}: exit {done.returncode}\n{done.stderr[-1500:]}", flush=True)
        return None, None


def clock(report):
    """Mean and greatest SM clock in MHz, as NVML has it."""
    metrics = {it["metric"]: it for it in report["hardware"]["devices"][0]["metrics"]}
    it = metrics.get("sm_clock") or metrics.get("clock") or {}
    return it.get("mean"), it.get("max")


def said(report):
    """What is said of counters."""
    return [it for it in report["hardware"]["notes"] if "ounters of" in it]


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found[1].replace(",", "")) if found else None


def by_ncu(out, program, *more):
    """DRAM %, tensor %, issue % and ns by grid, block and function."""
    ncu = shutil.which("ncu") or next((str(p) for p in sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if not ncu:
        return None
    metrics = {"dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor",
               "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": "issue", "gpu__time_duration.sum": "ns"}
    command = [ncu, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(metrics), *more, sys.executable, *program, "few"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    except subprocess.TimeoutExpired:
        return None
    (out / "ncu.csv").write_text(done.stdout)
    lines = [it for it in done.stdout.splitlines() if it.startswith('"')]
    if len(lines) < 3:
        print("ncu said:", done.stdout[-800:], done.stderr[-400:], flush=True)
        return None
    header, units = next(csv.reader([lines[0]])), next(csv.reader([lines[1]]))
    found = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[2:])), fieldnames=header):
        numbers = lambda text: tuple(int(it) for it in re.findall(r"\d+", text))[:3]
        key = (numbers(row["Grid Size"]), numbers(row["Block Size"]), base(row["Kernel Name"]))
        value = {}
        for name, short in metrics.items():
            unit = units[header.index(name)]
            scale = {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}.get(unit, 1)
            value[short] = float(row[name].replace(",", "") or "nan") * scale
        found.setdefault(key, []).append(value)
    return {key: {m: statistics.median(v[m] for v in values) for m in metrics.values()} for key, values in found.items()}


def ruled(it):
    """The class that docs/HARDWARE.md gives to what ncu counted."""
    busiest = max(it["tensor"], it["issue"])
    return "compute" if busiest >= 60 and busiest >= it["dram"] else "memory" if it["dram"] >= 60 else "latency"


def of_a_model(cuptop, out):
    """Attention, a training step and eager decoding: every kernel of 100 us and more against ncu."""
    (out / "model.py").write_text(MODEL)
    for what in ("attention", "train", "decode"):
        command = [cuptop, "trace", "--headless", "--json", "--python", "off", "--counters", "on", "--", sys.executable, str(out / "model.py"), what, "long"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (out / f"{what}.err").write_text(done.stderr)
        try:
            report = json.loads(done.stdout[done.stdout.find("{\n  \"") :])
        except ValueError:
            check(f"{what} runs under trace", False, f"exit {done.returncode}: {done.stderr[-300:]}")
            continue
        rows = {(tuple(s["grid"]), tuple(s["block"]), base(k["name"])): s for k in report["kernels"] for s in k["shapes"]}
        truth = by_ncu(out, [str(out / "model.py"), what], "--profile-from-start", "off") or {}
        alike = 0
        for key, it in sorted(truth.items(), key=lambda kv: -kv[1]["ns"]):
            mine = rows.get(key)
            if mine is None or mine["count"] < 5 or min(it["ns"], mine["total_ns"] / mine["count"]) < 100_000:
                continue
            alike += 1
            shares = {m: mine[m + "_share"] for m in ("dram", "tensor")}
            off = [m for m, share in shares.items() if share is None or abs(100 * share - it[m]) > 5]
            told = ", ".join(f"{m} {'-' if s is None else f'{100 * s:.1f}'} ({it[m]:.1f})" for m, s in shares.items())
            check(f"{what}: {key[2][:40]} {mine['total_ns'] / mine['count'] / 1e3:.0f} us", not off and mine["class"] == ruled(it),
                  f"{told}, issue ({it['issue']:.1f}); {mine['class']} ({ruled(it)}), {mine['samples']} samples, {mine['limit']}")
        short = {s["class"] for s in rows.values() if s["total_ns"] / s["count"] < 100_000 and s["count"] >= 5}
        print(f"{what}: {alike} kernels of 100 us and more compared, {len(truth)} seen by ncu; classes of shorter ones: {sorted(short)}", flush=True)
    check("kernels of a model compared", sum(": " in row for row in TABLE) >= 5, len(TABLE))


def of_two_ranks(cuptop, out):
    """Two GPUs sampled at once: each kernel has the shares that it has alone, and that ncu counts; nothing is lost."""
    program = str(out / "ranks.py")
    Path(program).write_text(RANKS)
    runs = {}
    for tag, command in (("alone", [sys.executable, program, "alone"]),
                         ("ranks", [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", program, "ranks"])):
        folder = out / f"run-{tag}"
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run([str(cuptop), "trace", "--headless", "--json", "--python", "off", "--counters", "on", "--save", str(folder), "--", *command],
                              capture_output=True, text=True, timeout=150)
        (out / f"{tag}.out").write_text(done.stdout)
        (out / f"{tag}.err").write_text(done.stderr)
        try:
            runs[tag] = json.loads(done.stdout[done.stdout.find("{\n  \"") :])
        except ValueError:
            check(f"{tag} runs under trace", False, f"exit {done.returncode}: {done.stderr[-500:]}")
            return
    both = runs["ranks"]
    rows = lambda report: {(tuple(s["grid"]), tuple(s["block"]), base(k["name"])): s for k in report["kernels"] for s in k["shapes"]}
    alone, beside, truth = rows(runs["alone"]), rows(both), by_ncu(out, [program])
    used = [it["device"] for it in both["devices"] if it["kernels"] > 0]
    check("both GPUs have kernels", len(used) == 2, used)
    ends = [it for it in said(both) if "% of a core" in it]
    check("each GPU had a sampler of its own", len({it.split(":")[0] for it in ends}) == 2, [it.split(":")[0] for it in ends])
    for note in ends:
        share = number(r"([\d.]+) % of a core", note)
        check("it lost nothing and took at most a tenth of a core", share <= 10 and not re.search("faster than|gap|without a time|not written|anew", note), note)
    compared = 0
    for key, mine in sorted(beside.items(), key=lambda kv: -kv[1]["total_ns"]):
        if key not in alone or mine["count"] < 500 or mine["total_ns"] / mine["count"] < 100_000:
            continue
        compared += 1
        share = lambda row, metric: None if row[metric + "_share"] is None else 100 * row[metric + "_share"]
        for metric in ("dram", "tensor"):
            here, there = share(mine, metric), share(alone[key], metric)
            counted = (truth or {}).get(key, {}).get(metric)
            ok = None not in (here, there) and abs(here - there) <= 5 and (counted is None or abs(here - counted) <= 5)
            check(f"{key[2][:34]} {metric}: beside the other rank, alone, by ncu", ok, f"{here} {there} {counted}")
        # Alone, a kernel may be launched late, which is a class of its own.
        classes = {alone[key]["class"]} | ({ruled(truth[key])} if key in (truth or {}) else set())
        check(f"{key[2][:34]} has its class", mine["class"] in classes, f"{mine['class']}, alone or by ncu {sorted(classes)}; {mine['samples']} samples, {mine['count']} launches")
    check("kernels of both ranks were compared", compared >= 3, compared)
    # As the program says: 60 rounds, and one that warms up.
    counts = sorted(it["count"] for it in beside.values())
    check("every launch of both ranks was recorded", all(1 + 60 * n in counts for n in (40, 20, 60, 200)), [it for it in counts if it > 60])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("cuptop")
    arguments.add_argument("--out", default="gpu-counters")
    arguments.add_argument("--seconds", type=float, default=450)
    arguments.add_argument("--long", type=float, default=60)
    arguments.add_argument("--only", choices=["model", "ranks"])
    args = arguments.parse_args()
    begin, cuptop, out = time.monotonic(), shutil.which(args.cuptop) or args.cuptop, Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "work.py").write_text(WORK)
    if args.only:
        {"model": of_a_model, "ranks": of_two_ranks}[args.only](cuptop, out)
        print("\n".join(TABLE), f"\n{FAILED} failed")
        return
    left = lambda: args.seconds - (time.monotonic() - begin)
    on, off, kernels, clocks = [], [], {"on": [], "off": []}, {"on": [], "off": []}
    for turn in range(5):
        if turn >= 3 and left() < 250:
            break
        for counters, times in (("off", off), ("on", on)) if turn % 2 else (("on", on), ("off", off)):
            report, phases = traced(cuptop, out, f"{counters}-{turn}", counters)
            if report:
                times.append(phases)
                kernels[counters].append(report["devices"][0]["kernels"])
                clocks[counters].append(clock(report))
                last = said(report)[-1:]
                print(counters, turn, phases, clock(report), *last, flush=True)
    check("programs ran under trace with and without counters", on and off, f"{len(on)} and {len(off)} times")
    if not on or not off:
        print("\n".join(TABLE)); return
    check("as many kernels recorded with as without", len(set(kernels["on"] + kernels["off"])) == 1, kernels)
    for phase in on[0]:
        a, b = (statistics.median(it[phase] for it in times) for times in (on, off))
        spread = max(it[phase] for it in off) / min(it[phase] for it in off) - 1
        allowed = max(0.015, spread) if phase in ("tiny", "mix") else 0.015
        check(f"{phase}: at most 1.5 % slower while sampled", a / b - 1 <= allowed, f"{b:.2f} -> {a:.2f} us, {100 * (a / b - 1):+.2f} %, spread {100 * spread:.1f} %")
    for counters, them in clocks.items():
        mean = [it[0] for it in them if it[0]]
        TABLE.append(f"      SM clock, counters {counters}: mean of runs {', '.join(f'{it:.0f}' for it in mean)} MHz")
    report, phases = traced(cuptop, out, "long", "on", str(args.long))
    check(f"a run of {args.long:.0f} s with counters", report is not None)
    if not report:
        print("\n".join(TABLE)); return
    end = said(report)[-1] if said(report) else "no note"
    print("\n".join(said(report)), flush=True)
    share = number(r"([\d.]+) % of a core", end)
    check("the sampler took at most a tenth of a core, beside its beginning", share is not None and share <= 10, end)
    check("it kept its fast moments", "20000 times" in end, end.split(";")[0])
    check("nothing was lost", said(report) and not re.search("faster than|gap|without a time|not written|anew", end), "")
    for hz in ("500", "5000", "20000"):
        if left() < 130:
            break
        other, _ = traced(cuptop, out, f"at-{hz}", hz, "6")
        last = said(other)[-1] if other and said(other) else "no note"
        reached = number(r"samples, ([\d,]+) a second", last)
        check(f"{hz} a second are reached and nothing is lost", reached and reached >= 0.9 * int(hz) and not re.search("faster than|gap", last), last)
    shapes = [(base(k["name"]), k["name"], s) for k in report["kernels"] for s in k["shapes"]]
    rows = {(tuple(s["grid"]), tuple(s["block"]), name): s for name, _, s in shapes}
    print(f"{'kernel':34} {'us':>9} {'class':>8} {'DRAM %':>13} {'tensor %':>13} {'SM %':>6} {'samples':>8}  limit", flush=True)
    percent = lambda v: "-" if v is None else f"{100 * v:.1f}"
    for name, _, s in sorted(shapes, key=lambda it: -it[2]["total_ns"])[:20]:
        pm = lambda m: percent(s[m + "_share"]) + ("" if s[m + "_error"] is None else f" ±{100 * s[m + '_error']:.1f}")
        print(f"{name[:34]:34} {s['total_ns'] / s['count'] / 1e3:9.1f} {s['class']:>8} {pm('dram'):>13} {pm('tensor'):>13} {percent(s['sm_share']):>6} {s['samples']:>7}{'*' if s['own_samples'] else ' '}  {s['limit']}", flush=True)
    longest = lambda test: max((it for it in shapes if test(it)), key=lambda it: it[2]["total_ns"], default=None)
    mean_us = lambda it: it[2]["total_ns"] / it[2]["count"] / 1e3
    for what, test in (("add", lambda it: re.search("AddFunctor|Self_add", it[1]) and mean_us(it) > 400),
                       ("gemm", lambda it: it[2]["tensor_share"] is not None and it[2]["tensor_share"] > 0.3 and mean_us(it) > 900
                        or re.search("nvjet|bf16|gemm.*tensorop|cutlass", it[1]) and 900 < mean_us(it) < 2200),
                       ("tiny", lambda it: it[2]["count"] >= 16_000 and mean_us(it) < 10)):
        it = longest(test)
        check(f"{what} is {CLASSES[what]}-bound", it and it[2]["class"] == CLASSES[what], it and f"{it[2]['class']}: {it[2]['limit']}, {it[2]['samples']} samples")
    truth = by_ncu(out, [str(out / "work.py")])
    if truth is None:
        check("ncu was there to compare with", False, "no ncu, or it refused")
    else:
        compared = 0
        for key, it in truth.items():
            mine = rows.get(key)
            # What ran once or twice, while the program was set up, ran before the first sample.
            if mine is None or mine["count"] < 5 or it["ns"] < 100_000 or mine["total_ns"] / mine["count"] < 100_000:
                continue
            for metric in ("dram", "tensor"):
                if mine[metric + "_share"] is None:
                    check(f"{key[2][:30]} {metric} is told", False, f"{mine['samples']} samples")
                    continue
                compared += 1
                got = 100 * mine[metric + "_share"]
                check(f"{key[2][:30]} {metric}", abs(got - it[metric]) <= 5, f"{got:.1f}, ncu {it[metric]:.1f} %")
        check("kernels compared with ncu", compared >= 8, compared)
    print(f"\n--- {time.monotonic() - begin:.0f} s")
    print("\n".join(TABLE))
    print(f"{FAILED} failed")


main()
sys.exit(min(FAILED, 100))
