#!/usr/bin/env python3
"""Runs what measures cuptop's speed and prints the tables of docs/PERFORMANCE.md.

usage: table.py [--cuptop FILE] [--benches DIR] [--operations N] [--runs N] [--keys N] [--rounds N] [--python FILE] [--only PART,…] [--quick] [--json FILE]

  --cuptop FILE   the program (target/release/cuptop)
  --benches DIR   a folder of bench binaries by name (store, frame, …) instead of `cargo bench`: for a machine without Rust
  --operations N  kernels in the trace files that are made for opening (1000000: 1.3 GB, in a temporary folder)
  --runs N        how often a file is opened; the median is shown (3)
  --keys N        keys that are pressed on the screen (400)
  --rounds N      rounds of the simulated run (20000)
  --python FILE   a Python that has HolisticTraceAnalysis, to open the same file beside
  --only PART     of: benches, open, report, simulator, screen; all but `benches` and `open` need only the program
  --quick         fewer samples of each bench (criterion's own option): a third of the time, wider intervals
  --json FILE     writes what was measured, too

Figures are of this machine and of what else it did meanwhile: the load before and after stands in the table. A bench counts the processor
time of the thread that it measures, a file is opened against the wall clock. "to reach" is what the project set itself; what is missed
says by how much, and stands together at the end.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import tempfile
import time

import measure

PARTS = ["benches", "open", "report", "simulator", "screen"]
MISSED = []


def time_of(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def judged(what, value, bound, more_is_better, said=""):
    """Whether a bound holds, in words; a miss is kept for the end."""
    by = bound / value if more_is_better else value / bound
    if by <= 1:
        return f"reached{said}"
    MISSED.append(f"{what}: by {100 * (by - 1):.0f} %")
    return f"**missed** by {100 * (by - 1):.0f} %{said}"


def table(head, rows):
    print(f"| {' | '.join(head)} |")
    print(f"|---|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def ladder(title, rows, name, sizes, columns):
    """Sizes down, zooms across, and the ratio of the greatest size to 10^4; takes what it shows out of `rows`."""
    lines, at = [], {}
    for size, words in sizes:
        got = [rows.pop(name(size, zoom), None) for zoom, _ in columns]
        if any(got):
            at[size] = got
            lines.append([words] + ["" if it is None else f"{time_of(it['ns'])} ({time_of(it['low'])} to {time_of(it['high'])})" for it in got])
    if not lines:
        return
    table([title] + [words for _, words in columns], lines)
    greatest, least = sizes[-1][0], next(size for size, words in sizes if words in ("10^4", "10,000"))
    if greatest in at and least in at:
        ratios = [f"{a['ns'] / b['ns']:.1f}" for a, b in zip(at[greatest], at[least]) if a and b]
        slowest = max((it for it in at[greatest] if it), key=lambda it: it["ns"])
        reach = judged(f"{title}, 10^7 operations", slowest["ns"], 4e6, False)
        print(f"Ratio of the greatest to 10^4, by column: {', '.join(ratios)}. To reach: 4 ms at any zoom: {reach} ({time_of(slowest['ns'])}).\n")


def frames(rows):
    if not any(name.startswith(("frame/", "draw/")) for name in rows):
        return
    print("## Frames\n")
    zooms = [("all", "whole timeline"), ("1/16", "1/16"), ("1/1024", "1/1024"), ("1/65536", "1/65536")]
    sizes = [(power, f"10^{power}") for power in range(3, 8)]
    ladder("asked of the store", rows, lambda size, zoom: f"frame/{zoom}/10^{size}", sizes, zooms)
    zooms = [("1", "whole timeline"), ("100", "1/100"), ("10000", "1/10000")]
    sizes = [(size, f"{size:,}") for size in (10_000, 1_000_000, 10_000_000)]
    ladder("drawn", rows, lambda size, zoom: f"draw/{size}/1/{zoom}", sizes, zooms)


def parts_once(said):
    """The analysis' parts by size, each done once."""
    parts, rest = measure.once(said)
    sizes = sorted({size for size, _, _ in parts})
    if parts:
        names = list(dict.fromkeys(name for _, name, _ in parts))
        taken = {(size, name): seconds for size, name, seconds in parts}
        cell = lambda size, name: f"{1e3 * taken[size, name]:.0f} ms" if (size, name) in taken else ""
        head = ["each once, per million operations"] + [f"{size:,}" for size in sizes]
        table(head, [[name] + [cell(size, name) for size in sizes] for name in names])
        graph = taken.get((1_000_000, "graph"))
        if graph:
            print(f"To reach: a graph of 10^6 operations in well under a second: {judged('graph of 10^6', graph, 1.0, False)}.\n")
    for line in rest:
        print(f"- {line}")
    if rest:
        print()


def opening(kept):
    sizes = kept["sizes"]
    print("## Opening traces\n")
    print(f"{sizes['rows'] / 2.2e6:.3g} million kernels: {sizes['json'] / 1e6:,.0f} MB of JSON, {sizes['gzip'] / 1e6:,.0f} MB gzip, "
          f"{sizes['rows'] / 1e6:.3g} million rows in {sizes['sqlite'] / 1e6:,.0f} MB of SQLite. The files are in the page cache.\n")
    whole = {it["name"]: it for it in kept.get("report", [])}
    third = sizes["json"] / 3 / (1 << 20)
    lines = []

    def line(words, wall, rate, unit, reach="", verdict="", cpu=None, mib=None):
        lines.append([words, f"{wall:.2f} s", "" if cpu is None else f"{cpu:.2f} s", "" if mib is None else f"{mib:,.0f} MiB", f"{rate:,.3g} {unit}" if rate < 100 else f"{rate:,.0f} {unit}", reach, verdict])

    read = {name: it["ns"] / 1e9 for name, it in kept.get("open", {}).items()}
    if "open/large.json" in read:
        wall = read["open/large.json"]
        rate = sizes["json"] / 1e6 / wall
        line("Kineto JSON into the timeline", wall, rate, "MB/s", "1,000 MB/s", judged("Kineto JSON", rate, 1000, True))
        wall = read["open/large.json.gz"]
        gunzip = whole.get("gunzip", {}).get("wall")
        verdict = judged("gzip", wall, gunzip, False, " (beside `gunzip` below)") if gunzip else ""
        line("the same, gzip", wall, sizes["json"] / 1e6 / wall, "MB/s", "the decompressor's own speed", verdict)
        wall = read["open/large.sqlite"]
        rate = sizes["rows"] / 1e6 / wall
        line("Nsight Systems SQLite into the timeline", wall, rate, "M rows/s", "1 M rows/s", judged("Nsight SQLite", rate, 1, True))
    for name, words in (("json", "`cuptop report --json` of the JSON"), ("gzip", "of the gzip"), ("sqlite", "of the SQLite"), ("cat", "beside: `cat \\| wc -c`"),
                        ("gunzip", "beside: `gunzip -c`"), ("hta", "beside: HolisticTraceAnalysis, parsing alone")):
        if it := whole.get(name):
            # What the program takes for itself would be most of it.
            bounded = name in ("json", "gzip") and sizes["json"] > 100e6
            reach = f"a third of the JSON in memory ({third:,.0f} MiB)" if bounded else ""
            verdict = judged(f"memory of {name}", it["mib"], third, False) if bounded else ""
            # What the system tells of a small program's memory is that of Python, which started it.
            mib = it["mib"] if words.startswith(("`cuptop", "of the")) else None
            line(words, it["wall"], it["rate"], it["unit"], reach, verdict, it["cpu"], mib)
    table(["", "wall", "processor", "most memory", "rate", "to reach", ""], lines)


def jobs(said):
    found = measure.ranks(said)
    if not found:
        return
    print("## Jobs of many ranks\n")
    names = list(dict.fromkeys(name for job in found for name, _ in job["parts"]))
    head = [""] + [job["name"] for job in found]
    table(head, [[name] + [dict(job["parts"]).get(name, "") for job in found] for name in names])
    for job in found:
        for line in job.get("found", []):
            print(f"- {job['name']}: {line}")
    print()


def show(kept):
    print(f"{kept['machine']}; {kept['date']}; load {kept['load'][0]:.1f} before, {kept['load'][1]:.1f} after; {kept['version']}{', --quick' if kept['quick'] else ''}\n")
    if "sizes" in kept:
        opening(kept)
    rows = dict(kept.get("benches", {}))
    said = kept.get("said", {})
    frames(rows)
    if rows or "graph" in said:
        print("## The store, recordings, the analysis\n")
        # Whatever has no table of its own.
        table(["what", "takes", "95 % interval", "rate"],
              [[name, time_of(it["ns"]), f"{time_of(it['low'])} to {time_of(it['high'])}", it["rate"]] for name, it in rows.items()])
        parts_once("\n".join(text for bench, text in said.items() if bench != "ranks"))
    if it := kept.get("simulator"):
        print(f"`run sync_points --set rounds={it['rounds']}` on the simulator, {it['records'] / 1e6:.2f} million records: {it['wall']:.2f} s, {it['records'] / 1e6 / it['wall']:.2f} M records/s, {it['mib']:.0f} MiB.\n")
    jobs(said.get("ranks", ""))
    if "screen" in kept:
        print("## The screen in a pseudo-terminal\n")
        print(kept["screen"] + "\n")
        if missed := re.search(r"missed: (.*)", kept["screen"]):
            MISSED.extend([] if missed[1] == "nothing" else [f"screen: {missed[1]}"])
    print(f"Missed: {'; '.join(MISSED) or 'nothing'}.")


def main():
    ask = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    ask.add_argument("--cuptop", type=pathlib.Path, default=measure.HERE.parent / "target/release/cuptop")
    ask.add_argument("--benches", type=pathlib.Path)
    ask.add_argument("--operations", type=int, default=1_000_000)
    ask.add_argument("--runs", type=int, default=3)
    ask.add_argument("--keys", type=int, default=400)
    ask.add_argument("--rounds", type=int, default=20_000)
    ask.add_argument("--python")
    ask.add_argument("--only", default=",".join(PARTS))
    ask.add_argument("--quick", action="store_true")
    ask.add_argument("--json", type=pathlib.Path)
    args = ask.parse_args()
    parts = args.only.split(",")
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    cuptop = args.cuptop.resolve()
    if set(parts) - {"benches", "open"} and not cuptop.exists():
        sys.exit(f"{cuptop} is not there: cargo build --release, or --cuptop")
    version = os.popen(f"'{cuptop}' --version").read().strip() if cuptop.exists() else ""
    folder = args.benches and args.benches.resolve()
    kept = dict(machine=measure.machine(), date=time.strftime("%Y-%m-%d"), version=version, quick=args.quick)
    before = os.getloadavg()[0]
    if "benches" in parts:
        kept["benches"], kept["said"] = measure.run_benches(folder, measure.all_benches(), args.quick)
    if {"open", "report", "screen"} & set(parts):
        with tempfile.TemporaryDirectory() as made:
            files = measure.Files(pathlib.Path(made), args.operations)
            if "open" in parts:
                kept["open"] = measure.run_benches(folder, ["open"], args.quick, [files.plain, files.packed, files.nsys])[0]
            if "report" in parts:
                kept["report"] = measure.programs(cuptop, files, args.runs, args.python)
            if {"open", "report"} & set(parts):
                kept["sizes"] = files.sizes()
            if "screen" in parts:
                kept["screen"] = measure.screens(cuptop, files.plain, args.operations, args.keys)
    if "simulator" in parts:
        kept["simulator"] = measure.simulated(cuptop, args.rounds)
    kept["load"] = [before, os.getloadavg()[0]]
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1))
    show(kept)


main()
