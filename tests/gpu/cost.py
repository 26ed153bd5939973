#!/usr/bin/env python3
"""What looking at a program from outside costs the program: Python stacks first, then the hardware, each switched on and off within one run.

usage: cost.py CUPTOP [--seconds S] [--block S] [--only python|hardware] [--stand-in] [--no-pin] [--out FILE]
       cost.py --selftest                       (the statistics alone, on made-up blocks whose truth is known)

Needs a GPU and python3 with torch; with --stand-in neither, but a C compiler and the sources of tests/fake beside this
folder: the loop then launches through a CUPTI that makes its records up, and there is no hardware to look at.

A loop of steps that are bound by the processor (Python and a few launches of small kernels, each step waited for) runs under
`cuptop trace --headless` in blocks of half a second. It sends SIGUSR2 to cuptop between them, which pauses looking from outside
and goes on with it, in the order on, off, off, on. Of each block counts the mean time of a step, of neighbouring blocks the
ratio: of one that was looked at and one that was not, and, as what this host can resolve, of two that were alike (they
lie between the others, in the same minutes). The estimate is the Hodges-Lehmann median of the pairs' logarithms, its 95 % interval that
of Wilcoxon's signed ranks: a second in which the host did something else moves neither far. The loop has a core of its own and
cuptop the others, unless --no-pin. Left out: the first seconds, and a twelfth of a second after each switch.

The upper bound of each interval should not exceed 2 %. The last lines are a table; the exit status is the number of checks that failed.
"""
import argparse
import ctypes
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve()
FAKES = HERE.parent.parent / "fake"
# Whether a block of four is looked at. Whatever drifts falls on both alike.
ORDER = [True, False, False, True]
# A switch is noticed within 5 ms, by the threads that look within 20; what is under way ends.
SETTLE = 1 / 12
MOST = 2.0
FAILED = []


# --- the loop, which is what is traced ---


def torch_steps():
    import torch

    x = torch.zeros(1024, device="cuda")

    def launches():
        for _ in range(10):
            x.add_(1)
        torch.cuda.synchronize()

    return launches


def stand_in_steps(folder):
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    cupti = ctypes.CDLL(os.environ["CUPTOP_CUPTI"])
    launch, correlation = cupti.fake_launch, [0]
    launch.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
    # As many sleeping threads as PyTorch has on a machine with many cores.
    for _ in range(40):
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    def launches():
        for _ in range(10):
            correlation[0] += 1
            launch(correlation[0], 1000)

    return launches


def deep(depth, work):
    """As deep as a module in a module is called."""
    return deep(depth - 1, work) if depth else work()


def loop(options):
    core = options.core
    launches = stand_in_steps(FAKES) if options.stand_in else torch_steps()

    def work():
        words = [str(number) for number in range(1500)]
        launches()
        return words

    def steps(seconds):
        """Steps for so long: how many, their seconds, and this thread's processor time in them."""
        count, begin, used = 0, time.perf_counter(), time.thread_time()
        until, now = begin + seconds, begin
        while now < until:
            deep(15, work)
            count += 1
            now = time.perf_counter()
        return count, now - begin, time.thread_time() - used

    # Threads that are there by now stay off that core.
    steps(1)
    if core >= 0:
        os.sched_setaffinity(0, {core})
    steps(3)
    blocks, looks, end = [], True, time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for wanted in ORDER:
            if wanted != looks:
                os.kill(os.getppid(), signal.SIGUSR2)
                looks = wanted
            steps(SETTLE)
            blocks.append((wanted, *steps(options.block)))
    print("BLOCKS " + json.dumps(blocks), flush=True)


# --- the statistics ---


def hodges_lehmann(values):
    """The median of all means of two, and its 95 % interval by Wilcoxon's signed ranks (normal approximation: from six values on)."""
    count = len(values)
    means = sorted((values[i] + values[j]) / 2 for i in range(count) for j in range(i, count))
    all_of_them = count * (count + 1) // 2
    rank = count * (count + 1) / 4 - 1.959964 * math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    rank = max(1, math.floor(rank))
    return statistics.median(means), means[rank - 1], means[all_of_them - rank]


def per_cent(log_ratios):
    return [(math.exp(it) - 1) * 100 for it in hodges_lehmann(log_ratios)]


def compare(blocks, column):
    """Per cent that a step takes longer while it is looked at: estimate and bounds; the same of neighbours that were alike."""
    step = [(it[0], math.log(it[column] / it[1])) for it in blocks]
    different = [a[1] - b[1] if a[0] else b[1] - a[1] for a, b in zip(step[::2], step[1::2])]
    alike = [b[1] - a[1] for a, b in zip(step[1::2], step[2::2])]
    return per_cent(different), per_cent(alike)


def selftest():
    """Intervals hold what is true in about 95 of 100 cases: made-up blocks with drift, bursts and an effect of 1 %."""
    assert hodges_lehmann([1, 2, 3, 4, 5, 6]) == (3.5, 1, 6), "by hand: 21 means of two, the first and the last"
    rng, held, found, trials = random.Random(4), 0, [], 400
    for _ in range(trials):
        blocks, pace = [], 0.0
        for at in range(80):
            pace += rng.gauss(0, 0.01)
            burst = rng.expovariate(4) if rng.random() < 0.1 else 0.0
            looked = ORDER[at % 4]
            blocks.append((looked, 1000, math.exp(pace + burst + rng.gauss(0, 0.02)) * (1.01 if looked else 1)))
        (middle, low, high), (same, same_low, same_high) = compare(blocks, 2)
        held += low <= 1 <= high and 1 or 0
        found.append(middle)
    check("statistics: 95 % intervals hold the truth in 92 to 98 of 100", 0.92 <= held / trials <= 0.98, f"{held / trials:.1%}")
    check("statistics: no bias", abs(statistics.mean(found) - 1) < 0.15, f"{statistics.mean(found):+.2f} % where +1 % is true")


# --- around it ---


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + detail if detail else ''}", flush=True)
    if not ok:
        FAILED.append(what)


def cores(is_pinned):
    """A core for the loop and those for everything else (without the loop's sibling), or nothing where there are none to spare."""
    allowed = sorted(os.sched_getaffinity(0))
    if not is_pinned or len(allowed) < 2:
        return -1, None
    core, siblings = allowed[-1], {allowed[-1]}
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            siblings.update(range(int(first), int(last or first) + 1))
    except (OSError, ValueError):
        pass
    rest = set(allowed) - siblings or set(allowed) - {core}
    return core, rest


def fakes(folder):
    """The stand-in's libraries; returns the environment that finds them."""
    for source, name in [("libcuda.c", "libcuda.so.580.1.1"), ("libcupti.c", "libcupti.so.13")]:
        soname = "libcuda.so.1" if source == "libcuda.c" else name
        line = ["cc", "-O1", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{soname}", "-o", f"{folder}/{name}", str(FAKES / source), "-ldl"]
        subprocess.run(line, check=True)
    os.symlink("libcuda.so.580.1.1", f"{folder}/libcuda.so.1")
    return {"LD_LIBRARY_PATH": str(folder), "CUPTOP_CUPTI": f"{folder}/libcupti.so.13"}


def traced(options, what, seconds, variables):
    core, rest = cores(not options.no_pin)
    off = ["--hardware", "off"] if what == "python" else ["--python", "off"]
    line = [options.cuptop, "trace", "--headless", "--json", *off, "--", sys.executable, str(HERE), "--loop"]
    line += ["--seconds", str(seconds), "--block", str(options.block), "--core", str(core), *(["--stand-in"] if options.stand_in else [])]
    if rest:
        line = ["taskset", "-c", ",".join(map(str, sorted(rest))), *line]
    return subprocess.run(line, capture_output=True, text=True, timeout=seconds + 150, env={**os.environ, **variables})


def measure(options, what, seconds, variables):
    done = traced(options, what, seconds, variables)
    told = next((it for it in done.stdout.splitlines() if it.startswith("BLOCKS ")), None)
    begin = done.stdout.find("{\n")
    report = json.loads(done.stdout[begin:]) if begin >= 0 else {}
    # Of the stand-in's records, whose times are made up, cuptop may well complain.
    if not told or not report or (done.returncode and not options.stand_in):
        check(f"{what}: it ran", False, f"exit code {done.returncode}: {done.stderr[-800:]}")
        return None
    blocks = [tuple(it) for it in json.loads(told[7:])]
    switches = sum(a[0] != b[0] for a, b in zip([(True,)] + blocks, blocks))
    heard = done.stderr.count("looking from outside")
    check(f"{what}: cuptop heard every switch", heard == switches, f"{heard} of {switches}")
    looked = sum(it[2] + SETTLE for it in blocks if it[0]) + 4
    if what == "python":
        sampling = report.get("sampling") or [{}]
        looks = sum(it.get("looks", 0) + it.get("torn", 0) for it in sampling)
        # Importing is looked at too, and more looks than a hundred a second are not made.
        check("python: it looked while it was to", 20 * looked < looks < 110 * (looked + 60), f"{looks} looks in {looked:.0f} s and the imports")
        share = sum(it.get("cost_ns", 0) for it in sampling) / 1e9 / looked
        rate = looks / looked
        check("python: under a tenth of a core", share <= 0.11, f"{share:.1%}")
    else:
        watching = report.get("hardware", {}).get("watching", {})
        share, rate = watching.get("core_share"), None
        check("hardware: at most 2 % of a core", share is not None and share <= 0.02, f"{share}")
        share = share or 0.0
    wall, alike = compare(blocks, 2)
    own, own_alike = compare(blocks, 3)
    check(f"{what}: a step takes at most {MOST:.0f} % longer", wall[2] <= MOST, f"{wall[0]:+.2f} % [{wall[1]:+.2f}, {wall[2]:+.2f}]; alike {alike[0]:+.2f} % [{alike[1]:+.2f}, {alike[2]:+.2f}]")
    return {
        "what": what,
        "blocks": len(blocks),
        "step_us": statistics.median(it[2] / it[1] for it in blocks) * 1e6,
        "wall": wall,
        "alike": alike,
        "processor": own,
        "processor_alike": own_alike,
        "core_share": share,
        "looks_per_s": rate,
        "core": cores(not options.no_pin)[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--seconds", type=float, default=160, help="of blocks, both parts together; starting and reporting take some 30 s more")
    parser.add_argument("--block", type=float, default=0.5, help="seconds of a block")
    parser.add_argument("--only", choices=["python", "hardware"])
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--no-pin", action="store_true")
    parser.add_argument("--out", help="a file for the figures, as JSON")
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--loop", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--core", type=int, default=-1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        return loop(options)
    if options.selftest:
        selftest()
        return len(FAILED)
    if not options.cuptop:
        parser.error("say where cuptop is")
    parts = [options.only] if options.only else ["python"] if options.stand_in else ["python", "hardware"]
    with tempfile.TemporaryDirectory() as folder:
        variables = fakes(folder) if options.stand_in else {}
        rows = [it for it in (measure(options, part, options.seconds / len(parts), variables) for part in parts) if it]
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    interval = lambda it: f"{it[0]:+.2f} [{it[1]:+.2f}, {it[2]:+.2f}]"
    print(f"\nper cent of a step, 95 %, {'a stand-in for CUDA, ' if options.stand_in else ''}{'pinned' if rows and rows[0]['core'] >= 0 else 'not pinned'}")
    print(f"{'looked at':10} {'blocks':>6} {'step us':>8}  {'by the clock':>22}  {'two alike':>22}  {'by processor time':>22}  {'of a core':>9}")
    for it in rows:
        texts = [interval(it[name]) for name in ["wall", "alike", "processor"]]
        print(f"{it['what']:10} {it['blocks']:6} {it['step_us']:8.0f}  {texts[0]:>22}  {texts[1]:>22}  {texts[2]:>22}  {it['core_share']:9.2%}")
    print(f"{len(FAILED)} checks failed")
    return min(len(FAILED), 100)


if __name__ == "__main__":
    sys.exit(main())
