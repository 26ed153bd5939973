#!/usr/bin/env python3
"""`cuptop attach` on a real GPU: programs that nobody prepared are recorded while they run, left, and recorded again.

usage: attach.py CUPTOP [--out DIR] [--only NAME,NAME] [--quick]
       attach.py --program NAME SECONDS FILE      (one of the programs by itself: what is attached to)

Only where --only names them: generate (transformers), torchrun (two ranks on one GPU), namespace (another mount namespace; needs root).
Needs a GPU, libcupti, python3 with torch; JAX and nvcc where they are there. What every program launches is told by torch.profiler, or by how it
was written. Takes less than six minutes; the last lines are a table, the exit status the number of checks that failed.
"""
import argparse
import contextlib
import csv
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve()
FAILED, TABLE, FIGURES = [], [], []
BEGUN = time.monotonic()
LOOKED = 2.0  # seconds a round records
CPP = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
using namespace std::chrono;
static long long now() { return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count(); }
__global__ void turn(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * 0.5f + 1.0f; }
int main(int argc, char** argv) {
    double seconds = atof(argv[1]); const int n = 1 << 16, each = 50; float* x; float out[4];
    cudaMalloc(&x, n * sizeof(float)); cudaMemset(x, 0, n * sizeof(float)); cudaDeviceSynchronize();
    std::vector<long long> at; long long until = now() + (long long)(seconds * 1e9); puts("READY"); fflush(stdout);
    while (now() < until) {
        at.push_back(now());
        for (int i = 0; i < each; i++) turn<<<n / 256, 256>>>(x, n);
        if (cudaDeviceSynchronize()) { puts("FAILED"); return 1; }
        at.push_back(now());
    }
    cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost);
    FILE* f = fopen(argv[2], "w"); fprintf(f, "{\"kernels\": %d, \"result\": \"%a\", \"steps\": [", each, out[1]);
    for (size_t i = 0; i < at.size(); i += 2) fprintf(f, "%s[%lld,%lld]", i ? "," : "", at[i], at[i + 1]);
    fprintf(f, "]}"); fclose(f); return 0;
}
"""


# --- the programs ---


def stamped(step, wait, seconds, file, kernels, result):
    """Runs steps for a while, each waited for, and writes when each was."""
    steps = []
    print("READY", flush=True)
    until = time.time_ns() + int(float(seconds) * 1e9)
    while time.time_ns() < until:
        begin = time.time_ns()
        step()
        wait()
        steps.append((begin, time.time_ns()))
    Path(file).write_text(json.dumps({"kernels": kernels, "result": result(), "steps": steps}))


def torch_step():
    import torch

    torch.manual_seed(0)
    layers = [m for _ in range(10) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]
    net = torch.nn.Sequential(*layers).cuda()
    x = torch.randn(128, 512, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), 0.0)  # it computes, and ends where it began whatever the number of steps

    def step():
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return torch, net, x, step


def counted(torch, step):
    """Kernels of a step as torch.profiler counts them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as it:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    names = [e for e in it.events() if str(e.device_type).endswith("CUDA")]
    kernels = [e for e in names if not e.name.startswith(("Mem", "mem"))]
    return len(kernels) / 5


def eager(seconds, file, graph=False):
    torch, net, x, step = torch_step()
    for _ in range(5):
        step()
    if graph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        step = captured.replay
    torch.cuda.synchronize()
    if seconds == "count":
        print(json.dumps({"kernels": counted(torch, step)}), flush=True)
        return
    digest = lambda: hashlib.sha256(net(x).detach().cpu().numpy().tobytes()).hexdigest()[:16]
    stamped(step, torch.cuda.synchronize, seconds, file, None, digest)


def graph(seconds, file):
    eager(seconds, file, graph=True)


def jax(seconds, file):
    import jax as it
    import jax.numpy as np

    if it.default_backend() != "gpu":
        sys.exit("no GPU in JAX")
    x = np.ones((512, 512)) / 512
    f = it.jit(lambda x: np.tanh(x @ x + 1e-3))
    out = [f(x)]
    out[0].block_until_ready()

    def step():
        y = x
        for _ in range(20):
            y = f(y)
        out[0] = y

    if seconds == "count":
        sys.exit("nobody counts here")
    digest = lambda: hashlib.sha256(out[0].tobytes()).hexdigest()[:16]
    stamped(step, lambda: out[0].block_until_ready(), seconds, file, None, digest)


def generate(seconds, file):
    """transformers' generate with random weights: a step is 16 tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=512, n_head=8)).cuda().half().eval()
    ids = torch.randint(0, 50000, (4, 32), device="cuda")
    step = lambda: model.generate(ids, max_new_tokens=16, do_sample=False, pad_token_id=0)
    digest = lambda: hashlib.sha256(step().cpu().numpy().tobytes()).hexdigest()[:16]
    step()
    stamped(step, torch.cuda.synchronize, seconds, file, None, digest)


def rank(seconds, file):
    """One of several ranks on one GPU; the first writes for all."""
    import torch.distributed as ranks

    ranks.init_process_group("gloo")
    torch, net, x, step = torch_step()
    for _ in range(5):
        step()
    me = ranks.get_rank()
    if me:  # only one is waited for
        sys.stdout = open(os.devnull, "w")
    digest = lambda: hashlib.sha256(net(x).detach().cpu().numpy().tobytes()).hexdigest()[:16]
    ranks.barrier()
    mine = f"{file}.{me}"
    stamped(step, torch.cuda.synchronize, seconds, mine, None, digest)
    them = [None] * ranks.get_world_size()
    ranks.all_gather_object(them, {"pid": os.getpid(), **json.loads(Path(mine).read_text())})
    if me == 0:
        Path(file).write_text(json.dumps({**them[0], "ranks": them}))


PROGRAMS = {"eager": eager, "graph": graph, "jax": jax, "generate": generate, "rank": rank}


# --- the checks ---


def check(what, ok, detail=""):
    TABLE.append((bool(ok), what, str(detail)))
    print(f"{'pass' if ok else 'FAIL'}  {what}  {detail}", flush=True)
    if not ok:
        FAILED.append(what)


class Program:
    """One of the programs, running; `result` is what it wrote at its end."""

    def __init__(self, command, seconds, folder, name):
        self.file = folder / f"{name}.json"
        self.errors = folder / f"{name}.err"
        with self.errors.open("w") as errors:
            # A program that crashes leaves what tells where, in its folder.
            dump = lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
            self.child = subprocess.Popen([*command, str(seconds), str(self.file.resolve())], stdout=subprocess.PIPE, stderr=errors,
                                          text=True, cwd=folder, preexec_fn=dump)
        self.line = self.child.stdout.readline().strip()

    def err(self):
        return self.errors.read_text()[-600:]

    def result(self):
        try:
            code = self.child.wait(120)
        except subprocess.TimeoutExpired:
            self.child.kill()
            code = "no end"
        return code, (json.loads(self.file.read_text()) if self.file.exists() else {})

    def wait(self, seconds):
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def status(self):
        """Of the program with all below it."""
        found = [self.child.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += [int(it) for it in (task / "children").read_text().split()]
        them = [self.of_one(pid) for pid in found]
        return {key: sum(it[key] for it in them) for key in them[0]}

    @staticmethod
    def of_one(pid):
        threads = {}
        for task in Path(f"/proc/{pid}/task").iterdir():
            # A thread may end while they are counted.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                threads[task.name] = (task / "comm").read_text().strip()
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        resident = int(found.group(1)) // 1024 if found else 0
        # CUPTI starts two threads from ours, which inherit its name (its number, not their own) and stay with two descriptors: nobody may
        # finalize CUPTI.
        theirs = lambda number, name: name.removeprefix("cuptop-").isdigit() and name != f"cuptop-{number}"
        ours = sum(name.startswith("cuptop") and not theirs(*it) for it in threads.items() for name in it[1:])
        return {"threads": len(threads), "ours": ours, "mib": resident,
                "fds": len(os.listdir(f"/proc/{pid}/fd")), "gpu_mib": gpu_memory(pid)}


def gpu_memory(pid):
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.splitlines()
        found = [int(r.split(",")[1]) for r in rows if r.split(",")[0].strip() == str(pid)]
        if not found:  # in a container ids are others: then there is but one program
            found = [int(r.split(",")[1]) for r in rows if len(rows) == 1]
        return sum(found)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def attach(pid, save, seconds, *more, processes=1):
    """Attaches; returns code, what was said, when recording was said to have begun in all its processes, and how long that took."""
    begun = time.monotonic()
    command = [CUPTOP, "attach", str(pid), "--headless", "--save", str(save), "--duration", f"{int(seconds * 1000)}ms", *more]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said, since, took = [], None, None
    for line in child.stderr:
        said.append(line)
        if since is None and "".join(said).count("recording process") >= processes:
            since, took = time.time_ns(), time.monotonic() - begun
    return child.wait(), "".join(said), since, took


def kernels_of(save, pid=None):
    """Starts of the kernels of a recording, or of one process of it, sorted, in ns since 1970."""
    done = subprocess.run([CUPTOP, "export", str(save), "--to", "csv"], capture_output=True, text=True, timeout=120)
    rows = csv.DictReader(done.stdout.splitlines())
    found, graphs = [], 0
    for row in rows:
        if row["kind"] == "kernel" and str(pid or row["pid"]) == row["pid"]:
            found.append(int(row["recorded_start_ns"]))
            graphs += row["graph"] not in ("", "0")
    return sorted(found), graphs


def between(sorted_times, begin, end):
    from bisect import bisect_left

    return bisect_left(sorted_times, end) - bisect_left(sorted_times, begin)


def milliseconds(steps):
    return [(b - a) / 1e6 for a, b in steps]


def registers(out):
    """A program that knows every register across its system calls, entered again and again. It uses no CUDA: the collector waits, and leaves."""
    source = HERE.parents[2] / "crates/ptrace/src/tests/guest.c"
    guest = out / "guest"
    made = subprocess.run(["cc", "-O1", "-w", "-pthread", "-o", str(guest), str(source), "-ldl"], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"left out: registers: {made.stderr[-200:]}")
        return
    # It ends once its rounds are over and its standard input is closed.
    quiet = dict(input="", capture_output=True, text=True, timeout=60)
    alone = subprocess.run([str(guest), "poll", "3000"], **quiet).stdout
    child = subprocess.Popen([str(guest), "poll", "3000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(0.1)
    waited = 0
    for index in range(6):
        _, said, _, _ = attach(child.pid, out / f"guest-{index}.cuptop", 0.2, "--python", "off", "--hardware", "off")
        waited += "does not use CUDA yet" in said
    entered, code = child.communicate(timeout=60)[0], child.returncode
    check("registers, vectors and errno are kept", code == 0 and entered == alone and waited >= 3, f"exit {code}, entered {waited} times, {entered.split()[-1:]}")


def program(name, command, expected, out, rounds, processes=1):
    alone_code, alone = Program(command, 3, out, f"{name}-alone").result()
    seconds = 2 + rounds * (LOOKED + 2.2)
    running = Program(command, seconds, out, name)
    if running.line != "READY" or alone_code != 0:
        check(f"{name}: the program runs", False, running.line)
        return
    time.sleep(1.5)
    before = running.status()
    windows, codes, still, took = [], [], [], []
    for index in range(rounds):
        save = out / f"{name}-{index}.cuptop"
        code, said, since, needed = attach(running.child.pid, save, LOOKED, "--python", "off", processes=processes)
        (out / f"{name}-{index}.txt").write_text(said)
        codes.append(code)
        if since is None:
            check(f"{name}: round {index} records", False, " ".join(said.split())[-200:])
            continue
        took.append(needed)
        found = re.search(r"stood still for ([\d.]+) ms", said)
        still.append(float(found.group(1)) if found else -1)
        windows.append((since, since + int((LOOKED - 0.05) * 1e9), save))
        time.sleep(1.2)
    after = running.status()
    code, result = running.result()
    steps = result.get("steps", [])
    check(f"{name}: goes on and ends well, same result", code == 0 and result.get("result") == alone.get("result"),
          f"exit {code}, {len(steps)} steps, {result.get('result')}")
    expected = expected or result.get("kernels")
    complete, total, wrong, graphs = 0, 0, {}, 0
    for (since, until, save), of in ((w, r) for w in windows for r in result.get("ranks") or [{"steps": steps}]):
        times, of_graphs = kernels_of(save, of.get("pid"))
        graphs += of_graphs
        inside = [(a, b) for a, b in of["steps"] if a >= since and b <= until]
        for a, b in inside:
            count = between(times, a, b)
            total += 1
            if expected is None:
                expected = count
            complete += count == expected
            if count != expected:
                wrong[count] = wrong.get(count, 0) + 1
    if name == "graph":
        # Capturing adds a kernel of its own; each replay has the same, and no fewer than the step without a graph.
        same = set(wrong)
        if not complete and len(same) == 1 and min(same) >= (expected or 0):
            expected, complete, wrong = min(same), total, {}
    detail = f"{complete} of {total} steps have {expected} kernels" + (f", others {dict(list(wrong.items())[:5])}" if wrong else "")
    check(f"{name}: every launch between subscribed and disabled is recorded", total > 20 and complete == total and expected, detail)
    if name == "graph":
        check("graph: nodes of a graph that was made before have its id", graphs > 0, f"{graphs} kernels")
    clear = lambda a, b: all(b < s - 3e8 or a > u + 3e8 for s, u, _ in windows)
    first = windows[0][0] if windows else 0
    last = windows[-1][1] if windows else 0
    phase = {
        "before": [s for s in steps if s[1] < first - 3e8],
        "during": [s for s in steps if any(s[0] > a + 2e8 and s[1] < b - 2e8 for a, b, _ in windows)],
        "after": [s for s in steps if s[0] > last + 3e8],
    }
    median = {k: statistics.median(milliseconds(v)) if v else float("nan") for k, v in phase.items()}
    of_rounds = []  # each round beside the pause before it and the one after it
    for index, (since, until, _) in enumerate(windows):
        begin, end = (windows[index - 1][1] if index else 0), (windows[index + 1][0] if index + 1 < len(windows) else 1 << 62)
        parts = [[s for s in steps if s[0] > a and s[1] < b] for a, b in ((begin + 3e8, since - 3e8), (since + 2e8, until - 2e8), (until + 3e8, end - 3e8))]
        of_rounds.append("/".join(f"{statistics.median(milliseconds(it)):.3f}" if it else "-" for it in parts))
    edges = [s for s in steps if not clear(*s) and s not in phase["during"]]
    FIGURES.append(f"{name}: step {median['before']:.3f} ms before, {median['during']:.3f} during, {median['after']:.3f} after ({', '.join(of_rounds)}); longest around attaching and "
                   f"leaving {max(milliseconds(edges), default=0):.1f}, else {max(milliseconds(phase['before'] + phase['during']), default=0):.1f}; stood still "
                   f"{max(still, default=-1):.1f}; to recording {statistics.median(took) if took else -1:.2f} s; {before} -> {after}")
    check(f"{name}: nothing of cuptop's runs afterwards", after["ours"] == 0 and after["fds"] <= before["fds"] + 2 * said.count("recording process"), f"{before} -> {after}")
    check(f"{name}: a thread stands still for at most 1 ms", still and max(still) <= 1.0, still)
    check(f"{name}: it takes at most 1 s to record", took and statistics.median(took) <= 1.0, [round(t, 2) for t in took])


def where(running, out):
    """Where a program crashed, as far as its dump and a debugger tell."""
    debugger = shutil.which("cuda-gdb") or shutil.which("gdb") or "/usr/local/cuda/bin/cuda-gdb"
    for dump in out.glob("core*"):
        ask = ["p $_siginfo", "bt 20", "info symbol $pc", "info registers", "x/16i $pc-32", "info threads", "thread apply all bt 8", "info sharedlibrary"]
        command = [debugger, "-batch", *[w for a in ask for w in ("-ex", a)], sys.executable, str(dump)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (out / f"crash-{running.child.pid}.txt").write_text(done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        begin = next((n for n, line in enumerate(lines) if "terminated with signal" in line), 0)
        print("\n".join(lines[begin : begin + 150]), flush=True)
        dump.unlink()


def again_and_again(name, command, out, rounds):
    """Many short rounds, and kills, on one program."""
    running = Program(command, 60 + rounds * 5, out, f"{name}-rounds")
    time.sleep(1)
    half = None
    failed = []
    for index in range(rounds):
        if index == rounds // 2:
            half = running.status()
        save = out / "round.cuptop"
        shutil.rmtree(save, ignore_errors=True)
        code, said, since, _ = attach(running.child.pid, save, 0.1, "--python", "off", "--hardware", "off")
        if code != 0 or since is None:
            failed.append((index, code, " ".join(said.split())))
            # What is ending may take its time, with its contexts on the GPU.
            if "is ending" in said:
                running.wait(60)
        if running.child.poll() is not None:
            failed.append((index, "the program ended", running.child.poll(), running.err()))
            where(running, out)
            break
    end = running.status() if running.child.poll() is None else {}
    check(f"{name}: {rounds} rounds, all recorded", not failed, [*failed[:2], *failed[-1:]])
    grown = {k: end.get(k, 0) - half.get(k, 0) for k in half} if half and end else {}
    check(f"{name}: the second half of them adds nothing", grown and grown["threads"] <= 0 and grown["fds"] <= 0 and grown["mib"] <= 16
          and grown["gpu_mib"] <= 64, grown)
    running.child.kill()


def killed(name, command, out, times):
    running = Program(command, 60, out, f"{name}-killed")
    time.sleep(1)
    slow = []
    for index in range(times):
        save = out / f"killed-{index}.cuptop"
        child = subprocess.Popen([CUPTOP, "attach", str(running.child.pid), "--headless", "--save", str(save)],
                                 stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(random.Random(index).uniform(0.0, 0.6))
        child.kill()
        child.wait()
        since = time.monotonic()
        while running.child.poll() is None and running.status()["ours"] and time.monotonic() - since < 5:
            time.sleep(0.02)
        if time.monotonic() - since > 2:
            slow.append(round(time.monotonic() - since, 1))
        shutil.rmtree(save, ignore_errors=True)
    save = out / "after-kills.cuptop"
    alive = running.child.poll() is None
    code, said, since, _ = attach(running.child.pid, save, 0.5) if alive else (1, "", None, None)
    check(f"{name}: cuptop killed {times} times, the program lives, the library falls silent, a new attach works",
          alive and not slow and code == 0 and since, f"slow {slow}, exit {code} {' '.join(said.split())[-150:] if code else ''}")
    running.child.send_signal(signal.SIGKILL)
    running.child.wait()


def elsewhere(commands, expected, work, wanted, rounds):
    """A launcher with two ranks, and a program in another mount namespace, which does not see cuptop's files."""
    torchrun = shutil.which("torchrun") or str(Path(sys.executable).with_name("torchrun"))
    if "torchrun" in wanted and Path(torchrun).exists():
        command = [torchrun, "--standalone", "--nproc-per-node", "2", str(HERE), "--program", "rank"]
        program("torchrun", command, expected.get("eager"), work, rounds, processes=2)
    if "namespace" in wanted:
        hides = f'mount -t tmpfs none "{Path(CUPTOP).parent}" && exec "$@"'
        command = ["unshare", "-m", "bash", "-c", hides, "hidden", *commands["eager"]]
        program("namespace", command, expected.get("eager"), work, rounds)


def main():
    global CUPTOP
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--program", nargs=3, metavar=("NAME", "SECONDS", "FILE"))
    parser.add_argument("--out", default=os.environ.get("OUT", "gpu-attach"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=0, help="nothing but so many short rounds on the first of --only")
    parser.add_argument("--programs", type=int, default=1, help="how many of them at once, with --rounds")
    parser.add_argument("--quick", action="store_true", help="one round each, few rounds again")
    args = parser.parse_args()
    if args.program:
        name, seconds, file = args.program
        PROGRAMS[name](seconds, file)
        return 0
    CUPTOP = str(Path(args.cuptop).resolve())
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=out)).resolve()
    wanted = [n for n in args.only.split(",") if n]
    commands = {name: [sys.executable, str(HERE), "--program", name] for name in PROGRAMS if name != "rank"}
    if "generate" not in wanted:
        commands.pop("generate")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if Path(nvcc).exists():
        (work / "static.cu").write_text(CPP)
        made = subprocess.run([nvcc, "-O2", "-cudart", "static", "-o", str(work / "static"), str(work / "static.cu")], capture_output=True, text=True)
        if made.returncode == 0:
            commands["static"] = [str(work / "static")]
        else:
            print("left out: static: " + made.stderr[-300:])
    else:
        print("left out: static: there is no nvcc")
    expected = {}
    for name in ("eager", "graph"):
        done = subprocess.run([*commands[name], "count", "-"], capture_output=True, text=True, timeout=120)
        try:
            expected[name] = round(json.loads(done.stdout.strip().splitlines()[-1])["kernels"])
        except (ValueError, IndexError):
            print(f"{name}: nobody counted its kernels: {done.stderr[-200:]}")
    has_jax = subprocess.run([sys.executable, "-c", "import jax; assert jax.default_backend() == 'gpu'"], capture_output=True).returncode == 0
    if not has_jax:
        commands.pop("jax")
        print("left out: jax is not here, or sees no GPU")
    if args.rounds:
        folders = [work / str(n) for n in range(args.programs)]
        [folder.mkdir() for folder in folders]
        them = [threading.Thread(target=again_and_again, args=(wanted[0], commands[wanted[0]], folder, args.rounds)) for folder in folders]
        [it.start() for it in them]
        [it.join() for it in them]
        return len(FAILED)
    registers(work)
    for name, command in commands.items():
        if (not wanted or name in wanted) and time.monotonic() - BEGUN < 200:
            program(name, command, expected.get(name), work, 1 if args.quick else 3)
    elsewhere(commands, expected, work, wanted, 1 if args.quick else 3)
    rest = "graph" if not wanted else wanted[0]
    if rest in commands and time.monotonic() - BEGUN < 250:
        killed(rest, commands[rest], work, 6 if args.quick else 15)
        left = 330 - (time.monotonic() - BEGUN)
        again_and_again(rest, commands[rest], work, 10 if args.quick else max(20, min(100, int(left / 0.9))))
    print("\n" + "\n".join(FIGURES))
    print(f"\n{'':4}  check")
    for ok, what, detail in TABLE:
        print(f"{'pass' if ok else 'FAIL'}  {what}  [{detail[:150]}]")
    print(f"\n{len(FAILED)} of {len(TABLE)} checks failed, {time.monotonic() - BEGUN:.0f} s")
    return len(FAILED)


if __name__ == "__main__":
    sys.exit(main())
