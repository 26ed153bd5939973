#!/usr/bin/env python3
"""Cuts the output of `cuptop run SCENARIO --headless --json` down to the figures that
tests/scenarios/sim_against_h200.rs compares the simulator with.

usage: figures.py "DATE, driver VERSION" SCENARIO.json...   (writes tests/data/h200/SCENARIO.json)
"""

import json
import pathlib
import sys


def overlap(devices):
    copy = sum(d["copy_ns"] for d in devices)
    return sum(d["overlap_ns"] for d in devices) / copy if copy else None


def figures(on, report):
    return {
        "on": on,
        "variants": [
            {
                "name": v["name"],
                "point": v.get("point"),
                "makespan_ns": v["makespan_ns"],
                # The GPU does not take equally long every time: what its repeats took at least and at most.
                "makespan_range_ns": [min(v["makespans_ns"]), max(v["makespans_ns"])],
                "wall_ns": v["wall_ns"],
                "overlap": overlap(v["devices"]),
                "kernels": {k["name"]: k["total_ns"] / max(k["count"], 1) for k in v["kernels"]},
            }
            for v in report["variants"]
        ],
    }


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target = pathlib.Path(__file__).parent.parent / "data" / "h200"
    target.mkdir(parents=True, exist_ok=True)
    for path in map(pathlib.Path, sys.argv[2:]):
        result = figures(sys.argv[1], json.loads(path.read_text()))
        (target / path.name).write_text(json.dumps(result, indent=1) + "\n")


main()
