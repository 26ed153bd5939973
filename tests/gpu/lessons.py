#!/usr/bin/env python3
"""Counted shares of lessons beside the declared ones, on a real GPU.

usage: lessons.py CUPTOP [--backend cuda|sim]      (needs the right to read counters, and a profile: `cuptop calibrate`)

Runs the lessons under `--counters 20000`, which counts little beside DRAM, tensor cores and SMs. Where a kernel declares bytes beyond
the L2 cache, its counted DRAM share must be within 5 points of the declared one; where it declares operations and issue was counted, what is
issued must be no less than 5 points below them (other instructions are issued, too). A kernel that got too few samples in a
hundred passes fails, and says so. Prints a table, and the number of checks that failed, which is the exit status.
"""
import argparse, json, subprocess, sys

LESSONS = {"transpose": ["naive", "tiled"], "fused_sin": ["separate", "fused"], "roofline": ["large"], "pipeline": ["sequential"]}
L2 = {"matmul": 0}  # three matrices of 16 MiB: what is in the cache is not known

options = argparse.ArgumentParser()
options.add_argument("cuptop")
options.add_argument("--backend", default="cuda")
options = options.parse_args()
failed = seen = 0
for lesson, variant in ((lesson, variant) for lesson, wanted in LESSONS.items() for variant in wanted):
    line = [options.cuptop, "run", lesson, "--variant", variant, "--repeat", "100", "--backend", options.backend, "--headless", "--json"]
    # Instruction issue, which matrix products are compared by, is counted up to 6,000 times a second.
    line += ["--counters", "on" if options.backend == "sim" else "5000" if lesson == "pipeline" else "20000"]
    done = subprocess.run(line, capture_output=True, text=True)
    report = json.loads(done.stdout)
    before = seen
    for work in (work for it in report["variants"] for work in it.get("work", [])):
        name = f"{lesson} {variant} {work['kernel']}"
        pairs = [("DRAM", work["declared_dram_share"], work["dram_share"]), ("issue", work["declared_flops_share"], work["issue_share"])]
        for what, declared, counted in pairs:
            if declared is None or (what == "DRAM" and work["kernel"] in L2) or (what == "issue" and counted is None):
                continue
            is_told = counted is not None
            ok = is_told and (abs(counted - declared) <= 0.05 if what == "DRAM" else counted >= declared - 0.05)
            seen, failed = seen + 1, failed + (not ok)
            told = f"{counted:.3f}" if is_told else "too few samples"
            print(f"{'pass' if ok else 'FAIL'}  {name:36} {what:6} declared {declared:.3f} counted {told}  {work['class']}")
    if seen == before:
        failed += 1
        print(f"FAIL  {lesson} {variant}: no kernel could be compared")
    for note in report["hardware"]["notes"] if report.get("hardware") else ["no counters"]:
        print(f"      {lesson} {variant}: {note}")
print(f"{seen} compared, {failed} failed")
sys.exit(failed)
