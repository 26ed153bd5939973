#!/usr/bin/env python3
"""The checks of run.sh, which builds the C++ programs that this one compares with.

usage: run.py CUPTOP OUT
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CUPTOP, OUT = sys.argv[1], Path(sys.argv[2])
TABLE, FAILED = [], []
START = time.monotonic()


def check(what, ok, detail=""):
    TABLE.append((bool(ok), what, detail))
    print(f"{'pass' if ok else 'FAIL'}  {what}  {detail}", flush=True)
    if not ok:
        FAILED.append(what)


def run(name, *command, timeout=150, env=None):
    """Runs a command, keeps what it printed as OUT/name.{out,err}, and never raises."""
    start = time.monotonic()
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **(env or {})})
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        text = lambda b: b.decode(errors="replace") if isinstance(b, bytes) else (b or "")
        code, out, err = -1, text(late.stdout), text(late.stderr) + f"\nno end within {timeout} s"
    except OSError as error:
        code, out, err = -2, "", str(error)
    (OUT / f"{name}.out").write_text(out)
    (OUT / f"{name}.err").write_text(err)
    print(f"----  {name}: exit {code}, {time.monotonic() - start:.1f} s", flush=True)
    return code, out, err


def as_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return {}


def scenario(name, path, *options, timeout=150):
    """A scenario on the GPU, headless: its exit code and its report."""
    code, out, err = run(name, CUPTOP, "run", path, "--backend", "cuda", "--headless", "--json", *options, timeout=timeout)
    report = as_json(out)
    counted = re.search(r"([\d,]+) operations were issued and ([\d,]+) recorded", err)
    health = report.get("health", {})
    lost = sum(health.get(k, 0) for k in ("dropped", "lost", "unknown")) + sum(health.get("rejected", {}).values() or [0])
    check(f"{name}: every operation has one record, none lost", counted and lost == 0,
          counted.group(0) if counted else tail(err))
    return code, report


def tail(text, length=300):
    return " ".join(text.strip().split())[-length:]


def variant(report, name, point=None):
    for v in report.get("variants", []):
        if v.get("name") == name and (point is None or v.get("point") == point):
            return v
    return {}


def doctor():
    code, out, _ = run("doctor", CUPTOP, "doctor")
    check("doctor finds a driver, a GPU, libcupti and NVRTC", code == 0 and "missing" not in out)
    found = re.search(r"CUPTI \d+ \(([^)]+)\)", out)
    code, out, err = run("kernels", sys.executable, HERE / "kernels.py")
    check("every kernel's results agree with the CPU's", code == 0, tail(out if code == 0 else out + err, 160))
    return found.group(1) if found else ""


def bundled():
    for name in ("pipeline", "pinned_vs_pageable", "tiny_copies"):
        code, report = scenario(name, name)
        expectations = report.get("expectations", [])
        for e in expectations:
            check(f"{name}: {e['what']} {e['expected']}", e["ok"], str(e["measured"]))
        check(f"{name}: exit code 0", code == 0 and expectations, str(code))


def faults():
    code, out, err = run("oob", CUPTOP, "run", HERE / "oob.toml", "--backend", "cuda", "--headless")
    check("a kernel that writes out of bounds: exit code 4, CUDA's words, the kernel, the line",
          code == 4 and "illegal memory access" in err and "oob" in err and "oob.toml:" in err, tail(err))
    code, _ = scenario("after-oob", "pipeline")
    check("a run after it works", code == 0, str(code))
    code, out, err = run("memory", CUPTOP, "run", HERE / "memory.toml", "--backend", "cuda", "--headless")
    check("more memory than there is: exit code 3, asked and free", code == 3 and "900 GiB" in err and "free" in err, tail(err))
    code, out, err = run("no-libcupti", CUPTOP, "run", "pipeline", "--backend", "cuda", "--headless",
                         env={"CUPTOP_CUPTI": "/nowhere/libcupti.so"})
    check("no libcupti: exit code 3 and what would help", code == 3 and "CUPTOP_CUPTI" in err + out, tail(err))
    code, out, err = run("no-gpu", CUPTOP, "run", "pipeline", "--backend", "cuda", "--headless", env={"CUDA_VISIBLE_DEVICES": ""})
    check("no visible GPU: exit code 3", code == 3, tail(err))


def calibrate():
    """Scenarios expect shares of what the GPU can do. That is known once it is calibrated, here for this run alone."""
    os.environ["XDG_DATA_HOME"] = str(OUT.resolve() / "data")
    code, _, err = run("calibrate", CUPTOP, "calibrate")
    check("calibrate writes a profile", code == 0 and len(profiles()) == 1, tail(err))


def profiles():
    return sorted((OUT / "data/cuptop/profiles").glob("*.toml"))


def simulated():
    code, out, err = run("simulated", CUPTOP, "run", "pipeline", "--backend", "sim", "--headless", "--json", "--profile", *profiles())
    real = as_json((OUT / "pipeline.out").read_text())
    for v in as_json(out).get("variants", []):
        found = variant(real, v["name"]).get("makespan_ns") or float("nan")
        off = v["makespan_ns"] / found - 1
        check(f"the calibrated simulator agrees within 15 %: pipeline, {v['name']}", abs(off) <= 0.15, f"{off:+.1%}")


def side_by_side(cupti):
    rows = {"launches": [], "c++ under CUPTI": [], "c++ bare": []}
    count, passes = 100_000, 5
    for turn in range(2):
        _, report = scenario(f"launches-{turn}", HERE / "launches.toml", "--set", f"count={count}")
        wall = variant(report, "launches").get("wall_ns")
        if wall:
            rows["launches"].append(wall / count)
        for row, arguments in (("c++ under CUPTI", [cupti]), ("c++ bare", [])):
            _, out, err = run(f"probe-launches-{row.split()[-1]}-{turn}", OUT / "probe", "launches", count, passes, *arguments)
            found = as_json(out)
            if "ns_per_launch" in found:
                rows[row].append(found["ns_per_launch"])
    medians = {row: statistics.median(values) if values else float("nan") for row, values in rows.items()}
    detail = ", ".join(f"{row} {ns:.0f} ns" for row, ns in medians.items())
    ratio = medians["launches"] / medians["c++ under CUPTI"]
    check("a scenario's launches <= 1.05 x a C++ loop's", ratio <= 1.05, f"{ratio:.3f} ({detail})")

    size, count = 64 << 20, 24
    ours = {"h2d": [], "d2h": [], "both": []}
    theirs = {"h2d": [], "d2h": [], "both": []}
    for turn in range(2):
        _, report = scenario(f"copies-{turn}", HERE / "copies.toml", "--set", f"count={count}")
        for name in ours:
            span = variant(report, name).get("makespan_ns")
            if span:
                ours[name].append(size * count * (2 if name == "both" else 1) / span)
        _, out, _ = run(f"probe-copies-{turn}", OUT / "probe", "copies", size, count, passes)
        for name, rate in as_json(out).items():
            theirs[name].append(rate)
    for name in ours:
        a = statistics.median(ours[name] or [0.0])
        b = statistics.median(theirs[name] or [float("nan")])
        check(f"a scenario's copies >= 99 % of a C++ loop's: {name}", a / b >= 0.99, f"{a:.2f} against {b:.2f} GB/s ({a / b:.4f})")


def main():
    cupti = ""
    for part in (doctor, calibrate, bundled, faults, simulated, lambda: side_by_side(cupti)):
        try:
            result = part()
            cupti = result if isinstance(result, str) else cupti
        except Exception as error:  # one part that breaks must not cost the others
            check(getattr(part, "__name__", "side by side"), False, f"{type(error).__name__}: {error}")
    print("\n" + "=" * 100)
    for ok, what, detail in TABLE:
        print(f"{'pass' if ok else 'FAIL'}  {what:72.72}  {detail[:150]}")
    print(f"{len(FAILED)} of {len(TABLE)} checks failed, {time.monotonic() - START:.0f} s")
    (OUT / "checks.json").write_text(json.dumps([{"ok": o, "what": w, "detail": d} for o, w, d in TABLE], indent=1))
    return min(len(FAILED), 100)


if __name__ == "__main__":
    sys.exit(main())
