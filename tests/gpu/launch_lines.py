#!/usr/bin/env python3
"""What lines of launches cost, and whether they are right, on a real GPU: launch_lines.py CUPTOP [--pairs N] [--only cost|lines]

Cost: a C++ loop (probe.cpp: no Python, so nothing is to be looked at) and a pinned loop of small torch kernels, shallow and 30 frames
deep, under `cuptop trace` with `--lines on` and with `--lines graphs` by turns. Each run of the torch loop is a child of one process
that has imported torch before, so that 15 pairs take a minute.

Lines: five small programs. Under cuptop each line that launches stands in an NVTX range with its number, which is the truth by line;
under torch.profiler with `with_stack=True` the same kernels in the same order have the innermost function of this file, which is the
truth by function. Autograd's threads have no frames: their launches must have the line that waits for them (`backward`).

Needs a GPU, g++ and torch. The table comes last; the exit status is the number of checks that failed. At most 200 s."""
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ME = os.path.abspath(__file__)
FILE = os.path.basename(ME)
PROGRAMS = ["train", "modules", "python", "threads", "hooks"]
STEPS = 4
CHECKING = os.environ.get("RANGES") == "1"


# --- the five programs: `at` marks the line that launches ---


class at:
    """A range with the caller's line, where lines are checked."""

    def __enter__(self):
        if CHECKING:
            import torch
            torch.cuda.nvtx.range_push(f"L{sys._getframe(1).f_lineno}")

    def __exit__(self, *_):
        if CHECKING:
            import torch
            torch.cuda.nvtx.range_pop()


def train(torch):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.ones(32, 64, device="cuda")

    def step():
        with at(): loss = model(x).square().mean()
        loss.backward()
        with at(): optimizer.step()
        with at(): optimizer.zero_grad(set_to_none=False)
    return step


def modules(torch):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm = torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)

        def forward(self, x):
            with at(): y = self.a(x)
            with at(): y = torch.nn.functional.gelu(y)
            with at(): return self.norm(x + y)

    model = torch.nn.Sequential(*[Layer() for _ in range(4)]).cuda()
    x = torch.ones(32, 64, device="cuda")

    @torch.no_grad()
    def step():
        model(x)
    return step


def python(torch):
    x = torch.ones(1000, device="cuda")

    def made():
        for n in range(3):
            with at(): yield x * n

    def deep(n):
        if n:
            return deep(n - 1)
        with at(): return x.sin()

    def step():
        with at(): list(made())
        deep(40)
        with at(): [x.add(n) for n in range(3)]
        with at(): (lambda: x.mul_(1.0))()
        with at(): sorted([3, 1, 2], key=lambda n: x.cos() is None)
        with at(): x.cpu()
    return step


def threads(torch):
    x = torch.ones(1000, device="cuda")

    def work():
        for _ in range(5):
            with at(): x.exp()
            with at(): x.log()

    def step():
        both = [threading.Thread(target=work) for _ in range(2)]
        for it in both: it.start()
        for it in both: it.join()
        with at(): x.sqrt()
    return step


def hooks(torch):
    model = torch.nn.Linear(64, 64).cuda()

    def hook(module, inputs, output):
        with at(): return output * 2

    def later(module, inputs):
        with at(): return (inputs[0] + 1,)

    model.register_forward_hook(hook)
    model.register_forward_pre_hook(later)
    x = torch.ones(32, 64, device="cuda")

    def step():
        with torch.no_grad():
            with at(): model(x)
            with at(): torch.nn.functional.softmax(x, -1)
    return step


def program(torch, name, profile):
    step = globals()[name](torch)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    if profile:
        with torch.profiler.profile(with_stack=True) as it:
            for _ in range(STEPS):
                step()
            torch.cuda.synchronize()
        return it.export_chrome_trace(profile)
    torch.cuda.nvtx.range_push("measured " + name)
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()


# --- the torch loop ---


def loop(torch, out):
    x = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    time.sleep(0.1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def launches(count=8000):
        begun = time.perf_counter()
        for _ in range(count // 500):
            for _ in range(500):
                x.add_(1)
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / count * 1e6

    def deep(n):
        return deep(n - 1) if n else launches()

    launches(), deep(27)
    result = [statistics.median(launches() for _ in range(5)), statistics.median(deep(27) for _ in range(5))]
    with open(out, "w") as file:
        json.dump(result, file)


def forked(work):
    """Runs it in a child, which has what is imported and no CUDA yet."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            # What is recorded is written every 20 ms.
            time.sleep(0.3)
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(code)
    if os.waitpid(child, 0)[1]:
        print("a child failed", file=sys.stderr)


def inside(what, out, names):
    import torch
    if what == "loops":
        for name in names:
            os.environ["CUPTOP_LINES"] = name.split("-")[1]
            forked(lambda: loop(torch, os.path.join(out, name)))
    for name in names if what != "loops" else []:
        forked(lambda: program(torch, name, os.path.join(out, name + ".json") if what == "profiled" else None))


# --- measuring ---


def traced(cuptop, out, lines, command, environment=None):
    log = out + ".log"
    with open(log, "w") as file:
        run = subprocess.run([cuptop, "trace", "--headless", "--python", "off", "--hardware", "off", "--lines", lines, "--save", out, "--", *command],
                             stdout=subprocess.PIPE, stderr=file, text=True, timeout=150, env={**os.environ, **(environment or {})})
    notes = [line.strip() for line in open(log) if "line" in line and ("get no" in line or "launches" in line and "takes more" in line)]
    return run, notes


def told(on, off):
    ratio = sorted(a / b for a, b in zip(on, off))
    middle = statistics.median(ratio)
    return middle, f"{statistics.median(off):7.3f} -> {statistics.median(on):7.3f} us a launch, ratio {middle:.3f} ({ratio[0]:.3f} to {ratio[-1]:.3f})"


def cost(cuptop, out, pairs, table):
    turns = [["on", "graphs"][(at + at // 2) % 2] for at in range(2 * pairs)]
    probe = os.path.join(out, "probe")
    subprocess.run(["g++", "-std=c++17", "-O2", "-o", probe, os.path.join(HERE, "probe.cpp"), "-ldl", "-lpthread"], check=True)
    # With an interpreter that nobody begins CUPTI's callbacks alone are what a launch pays for.
    library = os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "-")
    for what, preload, turns_of_it in (("C++ loop           ", "", turns), ("C++ and libpython  ", library, turns[:10])):
        found = {"on": [], "graphs": []}
        for at, lines in enumerate(turns_of_it if os.path.exists(preload) or not preload else []):
            name = os.path.join(out, f"cpp{at}{bool(preload)}")
            run, _ = traced(cuptop, name, lines, [*(["env", "LD_PRELOAD=" + preload] if preload else []), probe, "launches", "2000", "40"])
            said = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
            if not said:
                table.append(f"OFF  {what}: no figure: {run.stdout[-300:]!r}")
                break
            found[lines].append(said[-1]["ns_per_launch"] / 1e3)
        else:
            if found["graphs"]:
                table.append(what + " " + told(found["on"], found["graphs"])[1])
    names = [f"{at:02}-{lines}" for at, lines in enumerate(turns)]
    run, notes = traced(cuptop, os.path.join(out, "loops"), "on", [sys.executable, ME, "--inside", "loops", out, *names])
    found = {"on": [], "graphs": []}
    for name in names:
        with open(os.path.join(out, name)) as file:
            found[name.split("-")[1]].append(json.load(file))
    worst = 0
    for at, what in enumerate(["torch, shallow     ", "torch, 30 frames   "]):
        ratio, text = told([it[at] for it in found["on"]], [it[at] for it in found["graphs"]])
        table.append(what + text)
        worst = max(worst, ratio)
    table.extend(set(notes))
    table.append(f"{'ok  ' if worst <= 1.03 else 'OFF '} a launch costs at most 3 % more ({worst:.3f})")


# --- right or wrong ---


def profiled_functions(path):
    """Of each kernel by thread and order: its name, and the innermost function of this file; None on threads without Python."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    functions, calls, kernels = {}, {}, []
    for it in events:
        if it.get("cat") == "python_function":
            functions.setdefault(it["tid"], []).append(it)
        elif it.get("cat") in ("cuda_runtime", "cuda_driver"):
            calls[it["args"].get("correlation")] = it
        elif it.get("cat") == "kernel":
            kernels.append(it)
    found = {}
    for it in sorted(kernels, key=lambda it: calls[it["args"]["correlation"]]["ts"] if it["args"]["correlation"] in calls else 0):
        call = calls.get(it["args"]["correlation"])
        if call is None:
            continue
        around = [f for f in functions.get(call["tid"], []) if f["ts"] <= call["ts"] and f["ts"] + f["dur"] >= call["ts"] + call["dur"]]
        own = [f for f in around if FILE in f["name"]]
        inner = max(own, key=lambda f: f["ts"])["name"].rsplit(": ", 1)[-1] if own else None
        found.setdefault(call["tid"], []).append((it["name"], inner if around else "no frames"))
    return found


def lines(cuptop, out, table):
    folder = os.path.join(out, "programs")
    run, notes = traced(cuptop, folder, "on", [sys.executable, ME, "--inside", "programs", out, *PROGRAMS], {"RANGES": "1"})
    table.extend(set(notes))
    base = os.path.join(out, "programs.sqlite")
    subprocess.run([cuptop, "export", folder, "-o", base], check=True, capture_output=True)
    log = open(os.path.join(out, "profiled.log"), "w")
    subprocess.run([sys.executable, ME, "--inside", "profiled", out, *PROGRAMS], stdout=log, stderr=log, timeout=100)
    db = sqlite3.connect(base)
    for name in PROGRAMS:
        table.append(judge(db, name, os.path.join(out, name + ".json")))


def judge(db, name, profile):
    measured = db.execute("SELECT process, start_ns, end_ns FROM ranges WHERE name = ?", ("measured " + name,)).fetchone()
    if not measured:
        return f"OFF  {name}: did not run"
    launched = db.execute(
        "SELECT o.kind, o.name, c.thread, c.pid, l.line, l.stack_id, (SELECT r.name FROM ranges r WHERE r.process = o.process AND r.thread = c.thread"
        " AND r.start_ns <= c.start_ns AND r.end_ns >= c.end_ns AND r.name GLOB 'L[0-9]*' ORDER BY r.start_ns DESC LIMIT 1)"
        " FROM operations o JOIN calls c ON c.id = o.call_id LEFT JOIN launch l ON l.process = o.process AND l.correlation = o.correlation"
        " WHERE o.process = ? AND c.start_ns BETWEEN ? AND ? ORDER BY c.start_ns", measured).fetchall()
    frames, right, wrong, has, own = {}, 0, [], 0, 0
    for stack, function, file in db.execute("SELECT stack_id, function, file FROM frame ORDER BY stack_id, depth"):
        frames.setdefault(stack, []).append((function, file))
    by_thread = {}
    for kind, kernel, thread, pid, line, stack, truth in launched:
        function = next((f for f, file in frames.get(stack, []) if FILE in file), None)
        if kind == "kernel":
            by_thread.setdefault(thread, []).append((kernel, function.rsplit(".", 1)[-1] if function else None if stack else "no frames"))
        if truth:
            has += 1
            own += line is not None
            right += truth == f"L{line}"
            if truth != f"L{line}":
                wrong.append(f"{kernel or kind} {truth} is line {line}")
    try:
        theirs = profiled_functions(profile)
    except (OSError, KeyError, ValueError) as error:
        return f"OFF  {name}: no profile: {error}"
    mine = sorted(by_thread.values(), key=lambda it: -len(it))
    other = sorted(theirs.values(), key=lambda it: -len(it))
    alike = checked = 0
    # A thread without a range is one of autograd's.
    source, ranged = open(ME).read().splitlines(), {thread for *_, thread, _, _, _, truth in launched if truth}
    bare = [line for kind, _, thread, _, line, _, _ in launched if kind == "kernel" and thread not in ranged]
    waited = sum(line is not None and ".backward()" in source[line - 1] for line in bare)
    # Threads that come and go share a number there: those are compared that launched the same kernels.
    names = lambda it: [one[0] for one in it]
    for a, b in [(a, b) for a in mine for b in other if names(a) == names(b)]:
        for (_, function), (_, expected) in zip(a, b):
            if expected is None or expected == "no frames":
                continue
            checked += 1
            alike += function == expected
            if function != expected and len(wrong) < 20:
                wrong.append(f"{function} is {expected}")
    counts = [len(it) for it in mine], [len(it) for it in other]
    is_good = has and right >= 0.95 * has and alike >= 0.95 * checked and waited >= 0.95 * len(bare)
    for it in sorted(set(wrong))[:6]:
        print(f"   {name}: {it}", flush=True)
    return (f"{'ok  ' if is_good else 'OFF '} {name:8} by line {right} of {has} ({own} have one), by torch.profiler's function {alike} of {checked},"
            f" without frames {len(bare)}, {waited} of them by the line that waits, kernels by thread {counts[0]} and {counts[1]}")


def main():
    if "--inside" in sys.argv:
        what, out, *names = sys.argv[sys.argv.index("--inside") + 1:]
        return inside(what, out, names)
    cuptop = os.path.abspath(sys.argv[1])
    pairs = int(sys.argv[sys.argv.index("--pairs") + 1]) if "--pairs" in sys.argv else 15
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else "cost lines"
    table, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        for what, do in (("lines", lambda: lines(cuptop, out, table)), ("cost", lambda: cost(cuptop, out, pairs, table))):
            if what in only:
                try:
                    do()
                except Exception as error:
                    table.append(f"OFF  {what}: {type(error).__name__}: {error}")
                    for log in sorted(os.listdir(out)):
                        if log.endswith(".log") and (log[:3] != "cpp" or log == "cpp0False.log"):
                            print(log, open(os.path.join(out, log)).read()[-1500:], flush=True)
    print("\n".join(table))
    failed = sum(line.startswith("OFF") for line in table)
    print(f"{failed} checks failed; {time.monotonic() - begun:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
