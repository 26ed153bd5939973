#!/usr/bin/env python3
"""Runs every bundled scenario headless and prints a table of what each expects and what was measured.

usage: scenarios.py CUPTOP [--backend cuda|sim] [--out DIR]

A scenario that needs more GPUs than there are is skipped, which is said. The JSON reports go to DIR (tests/gpu/figures.py makes
of them what the simulator is compared with). Shares of a GPU's peaks are judged after `cuptop calibrate`; until then their scenarios fail.
The last line counts what failed; the exit status says whether anything did.
"""
import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    parser.add_argument("--backend", default="cuda", choices=["cuda", "sim"])
    parser.add_argument("--out", default="gpu-results")
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run([args.cuptop, "list"], capture_output=True, text=True).stdout.split("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, re.M)
    doctor = subprocess.run([args.cuptop, "doctor"], capture_output=True, text=True).stdout
    gpus = len(re.findall(r"^  ok +GPU", doctor, re.M))
    failed = 0
    for name in names:
        if name == "two_gpus" and args.backend == "cuda" and gpus < 2:
            print(f"skip  {name}: needs two GPUs, {gpus} found")
            continue
        start = time.perf_counter()
        done = subprocess.run([args.cuptop, "run", name, "--headless", "--json", "--backend", args.backend], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        (out / f"{name}.json").write_text(done.stdout)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            report = {"expectations": [], "health": {}}
        issued = re.search(r"([\d,]+) operations were issued and ([\d,]+) recorded", done.stderr)
        counts = f"{issued[1]} issued, {issued[2]} recorded" if issued else "simulated" if args.backend == "sim" else "no count"
        lost = report["health"].get("lost", 0) + report["health"].get("dropped", 0)
        ok = done.returncode == 0 and lost == 0 and (args.backend == "sim" or (issued and issued[1] == issued[2]))
        failed += not ok
        print(f"{'pass' if ok else 'FAIL'}  {name}: exit {done.returncode}, {seconds:.1f} s, {counts}, {lost} lost")
        if not ok:
            print("      " + done.stderr.strip()[-300:])
        for it in report["expectations"]:
            judged = "ok  " if it["ok"] else "none" if it.get("not_judged") else "FAIL"
            print(f"      {judged}  {it['what']} {it['expected']}: {it['why'] if judged == 'none' else it['shown']}")
    print(f"{failed} of {len(names)} scenarios failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
