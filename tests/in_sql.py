#!/usr/bin/env python3
"""Asks SQLite exports the questions that their schema names, with pandas, and holds the answers against the report.

    tests/in_sql.py CUPTOP TRACE...

Needs `pandas` from PyPI. Exit code 1 says what differs."""

import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import pandas


def check(cuptop, trace, folder):
    path = folder / "it.sqlite"
    subprocess.run([cuptop, "export", trace, "-o", path], check=True, capture_output=True)
    report = json.loads(subprocess.run([cuptop, "report", trace, "--json"], check=True, capture_output=True).stdout)
    with sqlite3.connect(path) as db:
        read = lambda sql: pandas.read_sql_query(sql, db)
        operations = read("SELECT * FROM operations")
        views = read("SELECT name FROM sqlite_master WHERE type = 'view'").name
        frames = {view: read(f"SELECT * FROM {view}") for view in views}
    path.unlink()
    # Busy time by merging spans in pandas.
    busy = 0
    for _, of in operations.sort_values("start_ns").groupby("device"):
        before = of.end_ns.cummax().shift(fill_value=0)
        busy += int((of.end_ns - of[["start_ns"]].assign(before=before).max(axis=1)).clip(lower=0).sum())
    devices = report["devices"]
    kernels = operations[operations.kind == "kernel"]
    idle = frames["idle_by_cause"]
    return {
        "operations": (len(operations), sum(d["ops"] for d in devices)),
        "busy": (busy, sum(d["busy_ns"] for d in devices)),
        "kernel time": (int(kernels.duration_ns.sum()), sum(k["total_ns"] for k in report["kernels"])),
        "top kernels": (int(frames["top_kernels"].launches.sum()), sum(k["count"] for k in report["kernels"])),
        "idle": (int(idle.total_ns.sum()), sum(c["total_ns"] for d in devices for c in d["idle"])),
        "calls": (int(frames["top_calls"].calls.sum()), sum(c["count"] for c in report["calls"])),
        "copied": (int(frames["copies_by_direction"].bytes.sum()),
                   sum(d[way]["bytes"] for d in devices for way in ("h2d", "d2h", "d2d", "p2p"))),
    }


def main():
    cuptop, traces = sys.argv[1], sys.argv[2:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            for what, (found, expected) in check(cuptop, trace, pathlib.Path(folder)).items():
                if found != expected:
                    wrong += 1
                    print(f"{trace}: {what}: {found} by SQL and pandas, {expected} in the report")
    print(f"{len(traces)} exports asked, {wrong} answers differ")
    sys.exit(wrong > 0)


main()
