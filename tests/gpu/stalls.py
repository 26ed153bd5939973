#!/usr/bin/env python3
"""What kernels wait for, sampled in the running program, on a real GPU: is every kernel recorded, what it costs, and beside ncu.

usage: stalls.py CUPTOP [--out DIR] [--seconds S]      (needs PyTorch; ncu where it is there; no network)

Runs kernels of known character under `cuptop trace --headless`, three times by turns with and without `--stalls on`: kernels of
each name are as many as without, and as many as launch calls; each phase's time beside the one without. Then the same kernels
under `ncu --section SourceCounters`: each group within 8 points. Then late: `cuptop attach --stalls on` to a program that counts
its launches every 100 ms, so that a standstill shows. Then both orders beside a sampler of counters of another program. A table
comes last, then the number of checks that failed, which is also the exit status. Stops beginning new work after S seconds (220).
"""
import argparse, csv, io, json, re, shutil, sqlite3, statistics, subprocess, sys, time
from pathlib import Path

WORK = r"""
import sys, time, torch
few = len(sys.argv) > 1
A = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
X = torch.randn(1 << 28, device="cuda"); Y = torch.empty_like(X)
M = torch.randn(12288, 12288, device="cuda"); T = torch.empty_like(M)
S = torch.randn(1 << 14, 1 << 12, device="cuda"); s = torch.randn(256, device="cuda")
def gemm(): A @ A
def add(): torch.add(X, 1.0, out=Y)
def transpose(): T.copy_(M.t())
def softmax(): torch.softmax(S, 1)
def tiny(): s.mul_(1.0)
phases = [(gemm, 30), (add, 60), (transpose, 40), (softmax, 100), (tiny, 4000)]
for f, _ in phases: f(); f()
torch.cuda.synchronize(); acc = {}
for _ in range(1 if few else 8):
    for f, n in phases:
        torch.cuda.synchronize(); a = time.perf_counter()
        for _ in range(2 if few else n): f()
        torch.cuda.synchronize(); acc.setdefault(f.__name__, []).append((time.perf_counter() - a) / n * 1e6)
print("PHASES", {k: sorted(v)[len(v) // 2] for k, v in acc.items()}, flush=True)
"""
# Counts what it launched and waited for in every 100 ms.
STEADY = r"""
import sys, time, torch
S = torch.randn(1 << 12, 1 << 12, device="cuda"); seconds = float(sys.argv[1])
torch.softmax(S, 1); torch.cuda.synchronize(); print("ready", flush=True)
begin = last = time.perf_counter(); n = total = 0; all = []
while time.perf_counter() - begin < seconds:
    for _ in range(20): torch.softmax(S, 1)
    torch.cuda.synchronize(); n += 20; total += 20
    if time.perf_counter() - last >= 0.1: all.append(n); n = 0; last = time.perf_counter()
print("COUNTS", total, all, flush=True)
"""
GROUPS = {
    "memory": ["long_scoreboard", "lg_throttle", "lg", "drain"],
    "sm": ["short_scoreboard", "mio_throttle", "mio", "tex_throttle"],
    "warps": ["barrier", "membar", "warpgroup_arrive", "gmma"],
    "pipe": ["wait", "math_pipe_throttle", "math", "dispatch_stall", "dispatch", "tensor"],
    "fetch": ["no_instructions", "no_instruction", "no_inst", "branch_resolving", "branch_resolve", "branch", "imc_miss"],
    "issued": ["selected"],
}
PREFIX = "smsp__pcsamp_warps_issue_stalled_"


def shares(reasons):
    """Parts of each group, from samples by NVIDIA's whole reasons (those of all samples, not of the cycles without issue)."""
    total = sum(reasons.values()) or 1
    known = {name: sum(reasons.get(it, 0) for it in all) / total for name, all in GROUPS.items()}
    return known | {"other": 1 - sum(known.values())}


class Table:
    def __init__(self):
        self.rows, self.failed = [], 0

    def row(self, what, value, ok=None):
        self.failed += ok is False
        self.rows.append(f"{'' if ok is None else 'ok' if ok else 'FAILED':7}{what:44} {value}")
        print(self.rows[-1], flush=True)


def run(command, seconds=90, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, **more)


def traced(cuptop, out, name, *options):
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    done = run([cuptop, "trace", "--headless", "--json", "--python", "off", "--save", directory, *options, "--",
                sys.executable, out / "work.py"])
    found = re.search(r"PHASES (\{.*\})", done.stdout)
    (out / f"{name}.txt").write_text(done.stdout[-200000:] + done.stderr)
    report = json.loads(done.stdout[done.stdout.index("\n{") + 1:]) if "\n{" in done.stdout else {}
    return eval(found[1]) if found else {}, report, done.stderr, directory


def kernels(report):
    return {it["name"]: it["count"] for it in report.get("kernels", [])}


def database(cuptop, directory):
    path = directory.with_suffix(".sqlite")
    path.unlink(missing_ok=True)
    run([cuptop, "export", directory, "-o", path])
    return sqlite3.connect(path)


def turns(cuptop, out, table):
    times, counts = {False: [], True: []}, {False: [], True: []}
    for turn in range(3):
        for on in (False, True):
            options = ["--stalls", "on"] if on else ["--counters", "off"]
            phases, report, said, directory = traced(cuptop, out, f"turn-{turn}-{on}", *options)
            times[on].append(phases); counts[on].append(kernels(report))
            if on:
                took = re.findall(r"switching on took (\d+) ms", said)
                table.row("switching on", f"{took} ms")
    for phase in times[False][0]:
        off, on = (statistics.median(it[phase] for it in times[x] if phase in it) for x in (False, True))
        spread = max(it[phase] for it in times[False]) / min(it[phase] for it in times[False])
        table.row(f"time of {phase}", f"{off:.2f} -> {on:.2f} us ({100 * (on / off - 1):+.1f} %; without alone {100 * (spread - 1):.1f} %)")
    table.row("kernels with as without", f"{[sum(it.values()) for it in counts[True]]} {[sum(it.values()) for it in counts[False]]}",
              all(it == counts[False][0] and it for it in counts[True]))
    db = database(cuptop, directory)
    mixes = {}
    for kernel, reason, samples in db.execute("SELECT * FROM stalls"):
        mixes.setdefault(kernel, {})[reason] = samples
    for it in sorted(report["kernels"], key=lambda it: -it["total_ns"])[:6]:
        reasons = mixes.get(it["name"], {})
        table.row(f"{it['name'][:44]}", f"{it['count']} x; {json.dumps(dict(sorted(reasons.items(), key=lambda x: -x[1])))}")
        pairs = [(reasons[x], reasons[x + "_not_issued"]) for x in reasons if x + "_not_issued" in reasons]
        table.row("    of pairs, not issued is the less", f"{sum(a >= b for a, b in pairs)} of {len(pairs)}")
        table.row("    said", json.dumps(it.get("stalls")))
    return mixes


def beside_ncu(out, mixes, table):
    ncu = shutil.which("ncu") or next(iter(sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if not ncu:
        return table.row("ncu", "is not there")
    done = run([ncu, "--section", "SourceCounters", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw",
                "--print-units", "base", "--kernel-name-base", "demangled", sys.executable, out / "work.py", "few"], 120)
    (out / "ncu.csv").write_text(done.stdout + done.stderr)
    lines = [it for it in done.stdout.splitlines() if it.startswith('"')]
    sums = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        if not row.get("ID", "").isdigit():
            continue
        of = sums.setdefault(row["Kernel Name"], {})
        for column, value in row.items():
            if column.startswith(PREFIX) and not column.endswith("_not_issued"):
                of[column[len(PREFIX):]] = of.get(column[len(PREFIX):], 0) + float((value or "0").replace(",", ""))
    key = lambda name: re.sub(r"\s+|\(int\)|\(bool\)|void", "", name)[:60]
    theirs = {key(name): (name, reasons) for name, reasons in sums.items()}
    if not theirs:
        table.row("ncu", "gave no samples: " + (done.stdout + done.stderr)[-200:])
    for name, ours in mixes.items():
        if key(name) not in theirs or sum(ours.values()) < 500 or sum(theirs[key(name)][1].values()) < 500:
            continue
        whole = {it: n for it, n in ours.items() if not it.endswith("_not_issued")}
        pairs = {}
        for it, n in ours.items():
            pairs[it.removesuffix("_not_issued")] = pairs.get(it.removesuffix("_not_issued"), 0) + n
        other = shares(theirs[key(name)][1])
        off = {way: max(abs(100 * (shares(it)[g] - other[g])) for g in other) for way, it in (("whole", whole), ("pairs", pairs))}
        table.row(f"ncu: {name[:39]}", " ".join(f"{g} {100 * shares(pairs)[g]:.0f}/{100 * shares(whole)[g]:.0f}/{100 * other[g]:.0f}" for g in other)
                  + f"; off pairs {off['pairs']:.1f} whole {off['whole']:.1f}", min(off.values()) <= 8)


def steady(out, seconds):
    it = subprocess.Popen([sys.executable, out / "steady.py", str(seconds)], stdout=subprocess.PIPE, text=True)
    it.stdout.readline()
    return it


def late(cuptop, out, table):
    program = steady(out, 16)
    time.sleep(3)
    directory = out / "late"
    done = run([cuptop, "attach", str(program.pid), "--headless", "--json", "--stalls", "on", "--duration", "5s", "--save", directory], 60)
    (out / "late.txt").write_text(done.stdout + done.stderr)
    total, counts = re.search(r"COUNTS (\d+) (\[.*\])", program.communicate(timeout=60)[0]).groups()
    counts = eval(counts)
    table.row("late: launches in 100 ms", f"median {statistics.median(counts)}, least {min(counts)}: {counts[::2]}")
    table.row("late: the program ended well", program.returncode, program.returncode == 0)
    db = database(cuptop, directory)
    calls = db.execute("SELECT count(*) FROM calls WHERE name LIKE '%LaunchKernel%'").fetchone()[0]
    ran = db.execute("SELECT count(*) FROM operations WHERE kind = 'kernel'").fetchone()[0]
    samples = db.execute("SELECT sum(samples) FROM stalls").fetchone()[0]
    table.row("late: kernels, launch calls, samples", f"{ran} {calls} {samples}", bool(samples))


def both_orders(cuptop, out, table):
    # Somebody has the counters: stalls are refused, and every kernel is recorded.
    other = subprocess.Popen([cuptop, "trace", "--headless", "--counters", "on", "--", sys.executable, out / "steady.py", "14"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    _, report, said, _ = traced(cuptop, out, "refused", "--stalls", "on")
    other.communicate(timeout=60)
    table.row("counters first: refused by name", re.findall(r"no stalls[^\n]*\n?[^\n]*", said)[:1], "no stalls" in " ".join(said.split()))
    table.row("counters first: kernels", sum(kernels(report).values()), sum(kernels(report).values()) > 30000)
    # The other order: who samples counters is refused, and this program goes on.
    first = subprocess.Popen([cuptop, "trace", "--headless", "--json", "--stalls", "on", "--python", "off", "--", sys.executable, out / "steady.py", "10"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(7)
    done = run([cuptop, "trace", "--headless", "--json", "--counters", "on", "--", sys.executable, out / "steady.py", "2"])
    text, said = first.communicate(timeout=60)
    total = int(re.search(r"COUNTS (\d+)", text)[1])
    ran = sum(n for name, n in kernels(json.loads(text[text.index("\n{") + 1:])).items() if "oftmax" in name or "oftMax" in name)
    notes = re.findall(r"no counters of[^\"]*", done.stdout + done.stderr)
    table.row("stalls first: counters are refused", notes[:1], bool(notes))
    table.row("stalls first: kernels of launches", f"{ran} of {total + 1}", ran == total + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop"); parser.add_argument("--out", default="stalls-out"); parser.add_argument("--seconds", type=float, default=220)
    args = parser.parse_args()
    out, cuptop, begin, table = Path(args.out).absolute(), str(Path(args.cuptop).absolute()), time.time(), Table()
    out.mkdir(parents=True, exist_ok=True)
    (out / "work.py").write_text(WORK); (out / "steady.py").write_text(STEADY)
    mixes = {}
    for name, part in [("turns", lambda: mixes.update(turns(cuptop, out, table))), ("late", lambda: late(cuptop, out, table)),
                       ("orders", lambda: both_orders(cuptop, out, table)), ("ncu", lambda: beside_ncu(out, mixes, table))]:
        if time.time() - begin > args.seconds:
            table.row(name, "no time left")
            continue
        try:
            part()
        except Exception as error:
            table.row(name, f"{type(error).__name__}: {error}"[:300], False)
    print("\n".join(table.rows))
    print(f"{table.failed} failed")
    sys.exit(min(table.failed, 100))


main()
