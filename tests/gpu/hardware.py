#!/usr/bin/env python3
"""What cuptop reads of the hardware beside a program, and what that costs, on a real GPU.

usage: hardware.py CUPTOP [--blocks N] [--seconds S] [--out DIR]

Traces a program (a PyTorch loop; without torch a bundled scenario) with `--headless --json` and checks that
every metric is there or says why not, that power, clock and memory agree with nvidia-smi's, that the looking thread takes
no more than 2 % of one core, that its files stay small, that the same works as uid 65534 (when started as root), and that a
process of somebody else on the GPU is named. Then it runs the program N times with the hardware watched and N times without,
by turns, and gives the difference of the program's own time with its 95 % interval. Ends with a short table and the
number of checks that failed, which is also the exit status.
"""
import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FAILED = []
PROGRAM = """
import sys, time, torch
seconds = float(sys.argv[1])
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
x = torch.randn(64, 1024, 1024).pin_memory()
for _ in range(20):
    a @ a
torch.cuda.synchronize()
begin, steps = time.perf_counter(), 0
while time.perf_counter() - begin < seconds:
    for _ in range(40):
        b = a @ a
        c = torch.relu(b)
    x[0].to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    steps += 1
took = time.perf_counter() - begin
print(f"STEP_US {took / steps * 1e6:.3f}", flush=True)
"""
# A second process that holds the GPU.
OTHER = "import torch, time; a = torch.ones(1 << 28, device='cuda'); torch.cuda.synchronize(); print('ready', flush=True); time.sleep(600)"
METRICS = ["sm", "occupancy", "tensor", "dram", "pcie_in", "pcie_out", "nvlink_in", "nvlink_out", "power", "clock", "temperature", "memory"]
# Two-sided 95 % of Student's t, by degrees of freedom.
T95 = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 12: 2.179, 14: 2.145, 19: 2.093}


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + str(detail) if detail != '' else ''}", flush=True)
    if not ok:
        FAILED.append(what)


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True).returncode == 0


def smi(stop, found):
    """nvidia-smi's power, clock and memory, once in half a second."""
    while not stop.is_set():
        try:
            asked = ["nvidia-smi", "--query-gpu=power.draw,clocks.sm,memory.used", "--format=csv,noheader,nounits", "-i", "0"]
            out = subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout.split(",")
            found.append([float(value) for value in out])
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return
        stop.wait(0.5)


def traced(cuptop, command, options, out, prefix=()):
    """A traced run: its report, what the program printed, the recording's folder."""
    save = Path(tempfile.mkdtemp(dir=out)) / "run"
    os.chmod(save.parent, 0o777)
    line = [*prefix, cuptop, "trace", "--headless", "--json", "--save", save, *options, "--", *command]
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True, timeout=600)
    text = done.stdout
    at = text.find("{\n")
    try:
        report = json.loads(text[at:])
    except (ValueError, IndexError):
        print(text[-2000:], done.stderr[-4000:])
        report = {}
    return report, text[: max(at, 0)] + done.stderr, save


def step_us(text):
    lines = [line for line in text.splitlines() if line.startswith("STEP_US ")]
    return float(lines[-1].split()[1]) if lines else None


def metrics_of(report):
    devices = report.get("hardware", {}).get("devices", [])
    return {it["metric"]: it for it in devices[0]["metrics"]} if devices else {}


def check_metrics(report, who):
    found = metrics_of(report)
    check(f"{who}: hardware is in the report", bool(found), report.get("hardware", {}).get("notes", ""))
    for name in METRICS:
        it = found.get(name, {})
        ok = it.get("mean") is not None or bool(it.get("lack"))
        value = it.get("lack") or f"{it.get('mean', 0):.4g} (most {it.get('max', 0):.4g}, limit {it.get('limit')}) {it.get('unit')}"
        check(f"{who}: {name}", ok, value)
    if found:
        gpu = report["hardware"]["devices"][0]
        watching = report["hardware"]["watching"]
        check(f"{who}: the looking thread takes <= 2 % of a core", (watching["core_share"] or 1) <= 0.02, f"{watching}")
        check(f"{who}: windows cover most of the run", gpu["looked_ns"] > 0.8 * report["devices"][0]["span_ns"], f"{gpu['looked_ns'] / 1e9:.2f} s of {report['devices'][0]['span_ns'] / 1e9:.2f} s")
        print(f"      {who}: throttled {gpu['throttled_share']} by {gpu['throttled_by']}; others {gpu['others']}, unknown {gpu['unknown_processes']}")
    off_cpu = report.get("off_cpu")
    print(f"      {who}: off the processor: {json.dumps(off_cpu)[:600] if off_cpu else 'not there (no schedstat?)'}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--out", default="gpu-hardware")
    args = parser.parse_args()
    cuptop = str(Path(args.cuptop).resolve())
    kept = Path(args.out).resolve()
    kept.mkdir(parents=True, exist_ok=True)
    # Where another user may go too.
    out = Path(tempfile.mkdtemp(prefix="cuptop-hardware-", dir="/tmp"))
    os.chmod(out, 0o777)
    if os.geteuid() == 0:
        cuptop = shutil.copy(cuptop, out / "cuptop")
        os.chmod(cuptop, 0o755)
    torch = has_torch()
    if not torch:
        # Without torch: a scenario of cuptop's own, which says less.
        done = subprocess.run([cuptop, "run", "pipeline", "--headless", "--json", "--backend", "cuda"], capture_output=True, text=True, timeout=300)
        report = json.loads(done.stdout)
        hardware = report.get("hardware")
        check("run: hardware is in the report or says why not", hardware is not None, json.dumps(hardware)[:800])
        print("no torch here: the rest was left out")
        print(f"{len(FAILED)} checks failed")
        return len(FAILED)
    program = out / "loop.py"
    program.write_text(PROGRAM)
    command = [sys.executable, program, args.seconds]

    # What it reads, beside nvidia-smi.
    stop, readings = threading.Event(), []
    thread = threading.Thread(target=smi, args=(stop, readings))
    thread.start()
    report, _, save = traced(cuptop, command, [], out)
    stop.set()
    thread.join()
    found = check_metrics(report, "as this user")
    (kept / "report.json").write_text(json.dumps(report, indent=1))
    busy = [it for it in readings if it[0] > 0.6 * max(r[0] for r in readings)] if readings else []
    if busy and found.get("power", {}).get("max") is not None:
        power, clock, memory = (max(it[i] for it in busy) for i in range(3))
        ours = found["power"]["max"]
        check("power agrees with nvidia-smi's (15 %)", abs(ours - power) <= 0.15 * power, f"{ours:.0f} W against {power:.0f}")
        clocks = [it[1] for it in busy]
        mean = found["clock"]["mean"]
        check("clock lies within nvidia-smi's (5 %)", 0.95 * min(clocks) <= mean <= 1.05 * max(clocks), f"{mean:.0f} MHz against {min(clocks):.0f} to {max(clocks):.0f}")
        ours = found["memory"]["max"] / 2**20
        check("memory agrees with nvidia-smi's (5 % or 600 MiB)", abs(ours - memory) <= max(0.05 * memory, 600), f"{ours:.0f} MiB against {memory:.0f}")
    else:
        print("left out: nvidia-smi said nothing")
    sizes = {it.name: it.stat().st_size for it in save.glob("*.outside.cuptop")}
    rate = sum(sizes.values()) / max(report["devices"][0]["span_ns"] / 1e9, 1e-9)
    check("the files take less than 4 kB a second", rate < 4000, f"{sizes}, {rate:.0f} B/s")
    database = save.parent / "hardware.sqlite"
    subprocess.run([cuptop, "export", "-o", str(database), str(save)], capture_output=True)
    rows = sqlite3.connect(database).execute("SELECT count(*) FROM hardware WHERE metric = 'power' AND unit = 'W'").fetchone()[0]
    check("windows are exported", rows > 5, f"{rows} rows")

    # Without root.
    if os.geteuid() == 0 and shutil.which("setpriv"):
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"HOME={out}", f"XDG_CACHE_HOME={out}/cache"]
        os.makedirs(out / "cache", exist_ok=True)
        os.chmod(out / "cache", 0o777)
        nobody, _, _ = traced(cuptop, command, [], out, prefix)
        there = {name for name, it in check_metrics(nobody, "as uid 65534").items() if it["mean"] is not None}
        check("uid 65534 reads what this user reads", there == {name for name, it in found.items() if it["mean"] is not None})
    else:
        print("left out: not root, so this user is the test")

    # Somebody else on the GPU. In a container with its own process ids nobody is named: then they are counted.
    other = subprocess.Popen([sys.executable, "-c", OTHER], stdout=subprocess.PIPE, text=True, start_new_session=True)
    other.stdout.readline()
    shared, _, _ = traced(cuptop, command, [], out)
    other.kill()
    other.wait()
    gpu = (shared.get("hardware", {}).get("devices") or [{}])[0]
    named = any(it["pid"] == other.pid for it in gpu.get("others", []))
    finding = any(it["rule"] == "machine" and "this GPU" in it["title"] for it in shared.get("findings", []))
    check("another process is named, or counted where ids are another namespace's", (named and finding) or gpu.get("unknown_processes", 0) >= 1, f"{gpu.get('others')}, unknown {gpu.get('unknown_processes')}")

    # What it costs the program: by turns, the difference of neighbours.
    differences, on_times, off_times = [], [], []
    for block in range(args.blocks):
        order = ["on", "off"] if block % 2 == 0 else ["off", "on"]
        took = {}
        for switch in order:
            _, text, save = traced(cuptop, command, ["--hardware", switch], out)
            took[switch] = step_us(text)
            shutil.rmtree(save.parent, ignore_errors=True)
        if None in took.values():
            check(f"block {block} printed its time", False)
            continue
        on_times.append(took["on"])
        off_times.append(took["off"])
        differences.append(took["on"] / took["off"] - 1)
        print(f"      block {block}: on {took['on']:.1f} us, off {took['off']:.1f} us a step", flush=True)
    low = high = mean = float("nan")
    if len(differences) >= 4:
        n = len(differences)
        mean = statistics.mean(differences)
        t = T95.get(n - 1, 2.1 if n > 12 else 2.4)
        half = t * statistics.stdev(differences) / n**0.5
        low, high = mean - half, mean + half
        check("watching the hardware costs the program <= 2 % (upper end of the 95 % interval)", high <= 0.02, f"{100 * mean:+.2f} % [{100 * low:+.2f}, {100 * high:+.2f}]")

    shutil.rmtree(out, ignore_errors=True)
    print()
    print(f"{'metric':<12} {'mean':>12} {'most':>12} {'limit':>12}  unit")
    for name in METRICS:
        it = found.get(name, {})
        if it.get("mean") is None:
            print(f"{name:<12} {it.get('lack', 'missing')}")
        else:
            print(f"{name:<12} {it['mean']:>12.5g} {it['max']:>12.5g} {it['limit'] if it['limit'] is not None else '':>12}  {it['unit']}")
    if differences:
        print(f"step, hardware on {statistics.median(on_times):.1f} us, off {statistics.median(off_times):.1f} us; difference {100 * mean:+.2f} % [{100 * low:+.2f}, {100 * high:+.2f}], {len(differences)} blocks")
    print(f"{len(FAILED)} checks failed" + (": " + "; ".join(FAILED) if FAILED else ""))
    return len(FAILED)


if __name__ == "__main__":
    sys.exit(main())
