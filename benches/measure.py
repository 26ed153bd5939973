"""What benches/table.py measures: the project's benches, whole programs on large files, and screens in a pseudo-terminal."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine():
    name = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{name}, {cores} core{'s' if cores != 1 else ''}"


def all_benches():
    """Every bench of the project, by Cargo.toml."""
    return re.findall(r'\[\[bench\]\]\s*name = "(\w+)"', (HERE.parent / "Cargo.toml").read_text())


def run_benches(folder, wanted, quick, files=()):
    """Rows of every criterion bench by name, and what each bench prints besides."""
    rows, said = {}, {}
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, CRITERION_HOME=home)
        if files:
            environment["CUPTOP_BENCH_FILES"] = ":".join(map(str, files))
        for bench in wanted:
            if folder:
                command = [str(folder / bench), "--bench"]
            else:
                command = ["cargo", "bench", "--locked", "--bench", bench, "--"]
            command += ["--noplot"] + (["--quick"] if quick else [])
            say(f"bench {bench} …")
            done = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True)
            if done.returncode:
                say(done.stderr[-2000:])
                sys.exit(f"the bench {bench} failed")
            said[bench] = done.stdout + done.stderr
        for file in sorted(pathlib.Path(home).rglob("new/estimates.json")):
            about = json.loads((file.parent / "benchmark.json").read_text())
            mean = json.loads(file.read_text())["mean"]
            bounds = mean["confidence_interval"]
            ns, rate = mean["point_estimate"], ""
            for kind, count in (about.get("throughput") or {}).items():
                per_second = count / ns * 1e3
                rate = f"{per_second:,.0f} MB/s" if kind.startswith("Bytes") else f"{per_second:.1f} M/s"
            rows[about["full_id"]] = dict(ns=ns, low=bounds["lower_bound"], high=bounds["upper_bound"], rate=rate)
    return rows, said


def measured(command, runs):
    """Median wall and processor seconds, and the greatest resident MiB."""
    wall, cpu, most = [], [], 0
    for _ in range(runs):
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall.append(time.monotonic() - began)
        if child.returncode:
            sys.exit(f"{' '.join(map(str, command))} ended with {child.returncode}")
        cpu.append(usage.ru_utime + usage.ru_stime)
        most = max(most, usage.ru_maxrss / 1024)
    return dict(wall=statistics.median(wall), cpu=statistics.median(cpu), mib=most)


class Files:
    """One made-up trace in all its forms."""

    def __init__(self, folder, operations):
        self.plain, self.packed, self.nsys = folder / "large.json", folder / "large.json.gz", folder / "large.sqlite"
        say("making trace files …")
        subprocess.run([sys.executable, HERE / "make_kineto.py", str(operations), self.plain], check=True)
        subprocess.run([sys.executable, HERE / "make_nsys.py", str(operations), self.nsys], check=True)
        with open(self.packed, "wb") as to:
            subprocess.run(["gzip", "-6", "-c", self.plain], check=True, stdout=to)
        # What was just written is on its way to the disk for a while.
        os.sync()
        self.bytes = self.plain.stat().st_size
        self.rows = 2.2 * operations

    def sizes(self):
        packed, nsys = self.packed.stat().st_size, self.nsys.stat().st_size
        return dict(json=self.bytes, gzip=packed, sqlite=nsys, rows=self.rows)


HTA = """
import sys, tempfile, os
from hta.trace_analysis import TraceAnalysis
with tempfile.TemporaryDirectory() as d:
    os.symlink(sys.argv[1], os.path.join(d, "rank0.json"))
    TraceAnalysis(trace_dir=d)
"""


def programs(cuptop, files, runs, python):
    """Whole programs on the large files, cuptop's and others."""
    say("opening files …")
    rows = []

    def row(name, command, rate):
        it = measured(command, runs)
        amount = files.bytes / 1e6 if rate == "MB/s" else files.rows / 1e6
        rows.append(dict(it, name=name, rate=amount / it["wall"], unit=rate))

    row("json", [cuptop, "report", files.plain, "--json"], "MB/s")
    row("gzip", [cuptop, "report", files.packed, "--json"], "MB/s")
    row("sqlite", [cuptop, "report", files.nsys, "--json"], "M rows/s")
    row("cat", ["sh", "-c", f"cat '{files.plain}' | wc -c"], "MB/s")
    row("gunzip", ["gunzip", "-c", files.packed], "MB/s")
    if python:
        row("hta", [python, "-c", HTA, files.plain], "MB/s")
    return rows


def screens(cuptop, trace, operations, keys):
    """The table that terminal.py prints; it ends with 1 where something was missed."""
    say("screens in a pseudo-terminal …")
    command = [sys.executable, HERE / "terminal.py", "--cuptop", cuptop, "--trace", trace, "--operations", str(operations), "--keys", str(keys)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or "| what |" not in done.stdout:
        sys.exit(f"terminal.py ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.strip()


def simulated(cuptop, rounds):
    """A long simulated run, and how many records it made."""
    say("the simulator …")
    command = [cuptop, "run", "sync_points", "--set", f"rounds={rounds}", "--backend", "sim", "--headless", "--json"]
    report = subprocess.run(command, capture_output=True, check=True).stdout
    return dict(measured(command, 3), rounds=rounds, records=json.loads(report)["health"]["received"])


def ranks(text):
    """What the bench of ranks printed: a job, and by part its seconds or words."""
    jobs = []
    for line in text.splitlines():
        if re.match(r"\d+ ranks, ", line):
            jobs.append(dict(name=line.strip(), parts=[]))
        elif jobs and (part := re.match(r"  (\S.*?)\s{2,}(\S.*)", line)):
            jobs[-1]["parts"].append(part.groups())
        elif jobs and line.startswith("  "):
            jobs[-1].setdefault("found", []).append(line.strip())
    return jobs


def once(text):
    """What a bench said of parts that it did once: operations, part, seconds per million; and the lines that are something else."""
    parts, rest = [], []
    for line in text.splitlines():
        if found := re.match(r"(\d+) operations: (.*) ([\d.]+) s per million", line):
            parts.append((int(found[1]), found[2], float(found[3])))
        elif re.match(r"\d+ operations: |10\^\d+: |\S.*bytes a record", line):
            rest.append(line)
    return parts, rest
