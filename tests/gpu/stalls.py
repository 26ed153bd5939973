#!/usr/bin/env python3
"""What kernels wait for, sampled in the running program, on a real GPU: is every kernel recorded, what it costs, beside ncu, and lines.

usage: stalls.py CUPTOP [--out DIR] [--seconds S] [--turns N] [--only turns,waits,findings,decode,user,lines,late,orders] [--cuda FILE.cu]   (no network)

Needs PyTorch with Triton and nvcc; ncu where it is there.
turns   kernels of known character under `cuptop trace --headless`, N times by turns with and without `--stalls on`: kernels of each name
        are as many as without; each phase's time beside the one without. Then the same kernels under `ncu --section SourceCounters`:
        each group within 8 points.
waits   waits.cu (and FILE.cu), whose kernels wait for one thing each: groups beside ncu's, hottest lines, findings.
findings  each kernel of waits.cu that waits for one thing, alone: it is told by its rule, and its cure is not.
decode  a decoder's step, eager and in a CUDA graph: every kernel is recorded, and its largest are told of.
user    the same as an ordinary user (uid 65534): sampled, or refused with the line that grants it.
lines   a Triton kernel: its hottest line is the one that gathers.
late    `cuptop attach --stalls on` to a program that counts its launches every 100 ms, so that a standstill shows.
orders  both orders beside a sampler of counters of another program.
A table comes last, then the number of checks that failed, which is also the exit status. Begins no new part after S seconds (220).
"""
import argparse, csv, ctypes, io, json, re, shutil, sqlite3, statistics, subprocess, sys, time
from pathlib import Path

WORK = r"""
import sys, time, torch
few = len(sys.argv) > 1
A = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
X = torch.randn(1 << 28, device="cuda"); Y = torch.empty_like(X)
M = torch.randn(12288, 12288, device="cuda"); T = torch.empty_like(M)
S = torch.randn(1 << 14, 1 << 12, device="cuda"); s = torch.randn(256, device="cuda")
F = torch.randn(4096, 4096, device="cuda"); I = torch.randint(0, 1 << 18, (1 << 18,), device="cuda"); E = torch.randn(1 << 18, 256, device="cuda")
Q = torch.randn(8, 16, 2048, 64, device="cuda", dtype=torch.bfloat16); nn = torch.nn.functional
def gemm(): A @ A
def add(): torch.add(X, 1.0, out=Y)
def transpose(): T.copy_(M.t())
def softmax(): torch.softmax(S, 1)
def tiny(): s.mul_(1.0)
def norm(): nn.layer_norm(S, (1 << 12,))
def gather(): torch.index_select(E, 0, I)
def reduce(): S.sum(1)
def scan(): torch.cumsum(S, 1)
def sgemm(): F @ F
def gamma(): torch.lgamma(S)
def attention(): nn.scaled_dot_product_attention(Q, Q, Q)
def gelu(): nn.gelu(X)
def sort(): torch.sort(S[:512], 1)
phases = [(gemm, 20), (add, 30), (transpose, 30), (softmax, 60), (tiny, 2000), (norm, 60), (gather, 60), (reduce, 60), (scan, 60), (sgemm, 30),
          (gamma, 30), (attention, 60), (gelu, 30), (sort, 20)]
for f, _ in phases: f(); few or f()
torch.cuda.synchronize(); acc = {}
for _ in range(1 if few else 4):
    for f, n in phases:
        torch.cuda.synchronize(); a = time.perf_counter()
        for _ in range(1 if few else n): f()
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
TRITON = r"""
import torch, triton, triton.language as tl
@triton.jit
def gathered(x, at, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.load(at + i, mask=i < n)
    v = tl.load(x + j, mask=i < n)  # GATHERS
    tl.store(y + i, v * 2.0 + 1.0, mask=i < n)  # USES
n = 1 << 26
x, y = (torch.randn(n, device="cuda") for _ in range(2)); at = torch.randint(0, n, (n,), device="cuda")
for _ in range(4000): gathered[(n // 1024,)](x, at, y, n, BLOCK=1024)
torch.cuda.synchronize(); print("PHASES {}")
"""
DECODE = r"""
import sys, time, torch
torch.manual_seed(0); d, heads, layers, past, steps = 2048, 16, 12, 1024, 60
new = lambda *n: torch.randn(*n, device="cuda", dtype=torch.bfloat16) * 0.02
W = [(new(d, 3 * d), new(d, d), new(d, 4 * d), new(4 * d, d), new(8, heads, past, d // heads), new(8, heads, past, d // heads)) for _ in range(layers)]
x, nn = new(8, d), torch.nn.functional
def step():
    h = x
    for qkv, o, up, down, k, v in W:
        q, k1, v1 = (nn.layer_norm(h, (d,)) @ qkv).view(8, 3, heads, 1, d // heads).unbind(1)
        k[:, :, :1] = k1; v[:, :, :1] = v1
        h = h + nn.scaled_dot_product_attention(q, k, v).reshape(8, d) @ o
        h = h + nn.gelu(nn.layer_norm(h, (d,)) @ up) @ down
    return h
for _ in range(3): step()
torch.cuda.synchronize(); run = step
if sys.argv[1] == "graph":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): step()
    run = graph.replay
took = []
for _ in range(steps):
    a = time.perf_counter(); run(); torch.cuda.synchronize(); took.append(1e6 * (time.perf_counter() - a))
print("PHASES", {sys.argv[1]: sorted(took)[steps // 2]}, flush=True)
"""
# What waits for one thing, its rule, and its cure.
CURES = [("chase", "few-warps", "chase_many"), ("one_bank", "bank-conflicts", "all_banks"), ("barriers", "barriers", "no_barriers"),
         ("long_code", "code-fetch", "short_code"), ("transpose_tiled", "bank-conflicts", "transpose_tiled_padded")]
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


def traced(cuptop, out, name, *options, command=None):
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    done = run([cuptop, "trace", "--headless", "--json", "--python", "off", "--save", directory, *options, "--",
                *(command or [sys.executable, out / "work.py"])])
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


def mixes_of(cuptop, directory):
    """Samples by kernel and reason, and kernels in the order in which each ran first."""
    db, mixes = database(cuptop, directory), {}
    for kernel, reason, samples in db.execute("SELECT * FROM stalls"):
        mixes.setdefault(kernel, {})[reason] = samples
    return mixes, [it[0] for it in db.execute("SELECT name FROM operations WHERE kind = 'kernel' GROUP BY name ORDER BY min(start_ns)")]


def turns(cuptop, out, table, rounds):
    times, counts, took = {False: [], True: []}, {False: [], True: []}, []
    for turn in range(rounds):
        for on in (False, True):
            options = ["--stalls", "on"] if on else ["--counters", "off"]
            phases, report, said, directory = traced(cuptop, out, f"turn-{turn}-{on}", *options)
            times[on].append(phases); counts[on].append(kernels(report))
            took += re.findall(r"switching on took (\d+) ms", said)
    table.row("switching on", f"{took} ms")
    for phase in times[False][0]:
        off, on = (statistics.median(it[phase] for it in times[x] if phase in it) for x in (False, True))
        spread = max(it[phase] for it in times[False]) / min(it[phase] for it in times[False])
        table.row(f"time of {phase}", f"{off:.2f} -> {on:.2f} us ({100 * (on / off - 1):+.1f} %; without alone {100 * (spread - 1):.1f} %)")
    table.row("kernels with as without", f"{[sum(it.values()) for it in counts[True]]} {[sum(it.values()) for it in counts[False]]}",
              all(it == counts[False][0] and it for it in counts[True]))
    beside_ncu(out, *mixes_of(cuptop, directory), ["--launch-count", "99", sys.executable, out / "work.py", "few"], table, "ncu.csv")


def demangled(name):
    """By the C++ library, as cuptop writes it but for spaces."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    text = library.__cxa_demangle(name.encode(), None, None, None)
    return ctypes.string_at(text).decode() if text else name


def base(name):
    """A function's own name, without what it returns, its namespaces, template arguments and parameters."""
    name = name.replace("(anonymous namespace)", "").removeprefix("void ")
    return re.split(r"[<(]", name)[0].rsplit("::", 1)[-1].strip()


def join(ours, theirs):
    """For each of our names theirs: the same but for spaces; else the same function of the rest, in the order of first launches."""
    bare = lambda name: re.sub(r"\s", "", name)
    known = {bare(demangled(it)): it for it in theirs}
    found = {it: known[bare(it)] for it in ours if bare(it) in known}
    for name in ours:
        if name not in found:
            rest = [it for it in theirs if it not in found.values() and base(demangled(it)) == base(name)]
            alike = [it for it in ours if it not in found and base(it) == base(name)]
            if len(rest) == len(alike):
                found.update(zip(alike, rest))
    return found


def ncu_samples(out, command, file):
    """Samples by mangled name and reason in the order of launches; of one launch too few, those of a name add up."""
    ncu = shutil.which("ncu") or next(iter(sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if not ncu:
        return {}, "it is not there"
    done = run([ncu, "--section", "SourceCounters", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw",
                "--print-units", "base", "--print-kernel-base", "mangled", *command], 150)
    (out / file).write_text(done.stdout + done.stderr)
    lines, sums = [it for it in done.stdout.splitlines() if it.startswith('"')], {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        if not row.get("ID", "").isdigit():
            continue
        of = sums.setdefault(row["Kernel Name"], {})
        for column, value in row.items():
            if column.startswith(PREFIX) and not column.endswith("_not_issued"):
                of[column[len(PREFIX):]] = of.get(column[len(PREFIX):], 0) + float((value or "0").replace(",", ""))
    return sums, (done.stdout + done.stderr)[-200:]


def beside_ncu(out, mixes, order, command, table, file):
    sums, said = ncu_samples(out, command, file)
    if not sums:
        return table.row("ncu", f"gave no samples: {said}")
    joined, within = join(order, list(sums)), []
    for name in order:
        ours = {it: n for it, n in mixes.get(name, {}).items() if not it.endswith("_not_issued")}
        theirs = sums.get(joined.get(name), {})
        if sum(ours.values()) < 500 or sum(theirs.values()) < 500:
            table.row(f"ncu: {base(name)[:39]}", f"samples {sum(ours.values())}, theirs {sum(theirs.values()) if theirs else 'not joined'}")
            continue
        mine, other = shares(ours), shares(theirs)
        off = max(abs(100 * (mine[g] - other[g])) for g in other)
        within.append(off <= 8)
        table.row(f"ncu: {base(name)[:39]}", " ".join(f"{g} {100 * mine[g]:.0f}/{100 * other[g]:.0f}" for g in other) + f"; off {off:.1f}", off <= 8)
    table.row("kernels within 8 points of ncu", f"{sum(within)} of {len(within)}; joined {len(joined)} of {len(order)}")


def told(report, table):
    for it in report.get("kernels", []):
        stalls = it.get("stalls") or {}
        lines = [f"{Path(x['file']).name}:{x['line']} {100 * x['share']:.0f} % {x['does']}" for x in stalls.get("lines", [])[:3]]
        table.row(f"lines: {base(it['name'])}", f"{stalls.get('samples')} samples; {lines}")
    for it in report.get("findings", []):
        table.row(f"finding {it['rule']}", f"{it['title']} | {it['advice']}"[:300])


def hottest(report, kernel):
    """Its hottest line's number."""
    of = [it for it in report.get("kernels", []) if base(it["name"]) == kernel]
    lines = (of[0].get("stalls") or {}).get("lines", []) if of else []
    return lines[0]["line"] if lines else None


def marked(text, word):
    return next(i for i, line in enumerate(text.splitlines(), 1) if word in line)


def waits(cuptop, out, table, built):
    here = Path(__file__).parent
    for name, (build, command) in built.items():
        if build.wait(timeout=120):
            table.row(f"nvcc {name}", (build.stderr.read() or b"")[-200:], False)
            continue
        _, report, _, directory = traced(cuptop, out, f"waits-{name}", "--stalls", "on", command=[command])
        told(report, table)
        if name == "waits":
            text = (here / "waits.cu").read_text()
            for kernel in ("chase", "one_bank"):
                line, want = hottest(report, kernel), marked(text, f"WAITS {kernel}")
                table.row(f"hottest line of {kernel}", f"{line}, expected {want}", line == want)
        beside_ncu(out, *mixes_of(cuptop, directory), ["--launch-count", "12", command], table, f"{name}.csv")


def findings(cuptop, out, table, built):
    build, command = built["waits"]
    table.row("nvcc waits", build.wait(timeout=120), not build.returncode)
    for kernel, rule, cure in CURES:
        for name, is_told in ((kernel, True), (cure, False)):
            _, report, _, _ = traced(cuptop, out, f"one-{name}", "--stalls", "on", command=[command, "3", name])
            stalls = next((it.get("stalls") or {} for it in report.get("kernels", []) if base(it["name"]) == name), {})
            parts = {it: round(stalls[it] / stalls["samples"], 2) for it in ("memory", "sm", "warps", "pipe", "fetch") if stalls.get("samples")}
            found = [it["rule"] for it in report.get("findings", [])]
            table.row(f"{name}: {rule}{'' if is_told else ' is silent'}", f"{found} {parts}", bool(parts) and (rule in found) == is_told)


def decode(cuptop, out, table):
    (out / "decode.py").write_text(DECODE.lstrip("\n"))
    for mode in ("eager", "graph"):
        command, counts = [sys.executable, out / "decode.py", mode], []
        for options in (["--counters", "off"], ["--stalls", "on"]):
            took, report, _, _ = traced(cuptop, out, f"decode-{mode}", *options, command=command)
            counts.append(kernels(report))
            table.row(f"decode {mode}, {options[0][2:]} {options[1]}", f"a step {took.get(mode, 0):.0f} us, {sum(counts[-1].values())} kernels")
        table.row(f"decode {mode}: kernels with as without", counts[0] == counts[1], counts[0] == counts[1] and bool(counts[0]))
        told = [(base(it["name"])[:24], it["stalls"]) for it in report.get("kernels", []) if (it.get("stalls") or {}).get("samples", 0) >= 500]
        most = lambda mix: max(("memory", "sm", "warps", "pipe", "fetch"), key=mix.get)
        words = [f"{name} {most(mix)} {100 * mix[most(mix)] / mix['samples']:.0f} %" for name, mix in told[:4]]
        table.row(f"decode {mode}: kernels told of", f"{len(told)}: {', '.join(words)}", bool(told))


def user(cuptop, out, table):
    home = Path("/tmp/cuptop-user"); shutil.rmtree(home, ignore_errors=True); home.mkdir(); home.chmod(0o777)
    shutil.copy(cuptop, home / "cuptop"); shutil.copy(out / "waits", home / "waits")
    done = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", f"HOME={home}", home / "cuptop", "trace", "--headless", "--json",
                "--python", "off", "--stalls", "on", "--save", home / "rec", "--", home / "waits", "3", "chase"])
    report = json.loads(done.stdout[done.stdout.index("\n{") + 1:]) if "\n{" in done.stdout else {}
    samples = sum((it.get("stalls") or {}).get("samples", 0) for it in report.get("kernels", []))
    said = " ".join(done.stderr.split())
    (out / "user.txt").write_text(done.stdout + done.stderr)
    table.row("ordinary user: samples, or who refuses", f"{samples} samples; {re.findall(r'no stalls.{0,160}', said)[:1]}",
              sum(kernels(report).values()) >= 300 and (samples > 0 or "no stalls" in said))


def build(out, files):
    nvcc = shutil.which("nvcc") or str(next(iter(sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))), "nvcc"))
    kernels = Path(__file__).parent / "transpose.cu"
    kernels = kernels if kernels.exists() else Path(__file__).parents[2] / "kernels/transpose.cu"
    command = [nvcc, "-O2", "-std=c++17", "-arch=native", "-lineinfo", f'-DTRANSPOSE="{kernels}"']
    return {it.stem: (subprocess.Popen([*command, it, "-o", out / it.stem], stderr=subprocess.PIPE), out / it.stem) for it in files}


def lines(cuptop, out, table):
    _, report, _, directory = traced(cuptop, out, "triton", "--stalls", "on", command=[sys.executable, out / "triton_work.py"])
    told(report, table)
    line, want = hottest(report, "gathered"), [marked(TRITON.lstrip("\n"), it) for it in ("GATHERS", "USES")]
    table.row("hottest line of Triton's kernel", f"{line}, expected one of {want}", line in want)
    code = b"".join(it.read_bytes() for it in directory.iterdir())
    table.row("an ELF file in the recording", code.count(b"\x7fELF"), b"\x7fELF" not in code)


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
    parser.add_argument("--turns", type=int, default=3); parser.add_argument("--only", default="waits,findings,decode,user,lines,turns,late,orders")
    parser.add_argument("--cuda", type=Path, action="append", default=[])
    args = parser.parse_args()
    out, cuptop, begin, table = Path(args.out).absolute(), str(Path(args.cuptop).absolute()), time.time(), Table()
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (("work.py", WORK), ("steady.py", STEADY), ("triton_work.py", TRITON.lstrip("\n"))):
        (out / name).write_text(text)
    needs_waits = any(it in args.only for it in ("waits", "findings", "user"))
    built = build(out, [Path(__file__).parent / "waits.cu", *args.cuda]) if needs_waits else {}
    parts = {"lines": lambda: lines(cuptop, out, table), "findings": lambda: findings(cuptop, out, table, built),
             "decode": lambda: decode(cuptop, out, table), "user": lambda: user(cuptop, out, table), "waits": lambda: waits(cuptop, out, table, built),
             "turns": lambda: turns(cuptop, out, table, args.turns), "late": lambda: late(cuptop, out, table),
             "orders": lambda: both_orders(cuptop, out, table)}
    for name, part in parts.items():
        if name not in args.only.split(","):
            continue
        if time.time() - begin > args.seconds:
            table.row(name, "no time left")
            continue
        try:
            part()
        except Exception as error:
            table.row(name, f"{type(error).__name__}: {error}"[:300], False)
        table.row("seconds", f"{time.time() - begin:.0f} after {name}")
    print("\n".join(table.rows))
    print(f"{table.failed} failed")
    sys.exit(min(table.failed, 100))


main()
