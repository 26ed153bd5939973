#!/usr/bin/env python3
"""Predictions of cuptop against what runs on this machine's GPU.

usage: predict.py CUPTOP OUT [--traces DIR] [--no-torch]

Runs every bundled scenario that declares a pair of a mistake and its cure, predicts the cure from the mistake's records
and sets it beside the cure as it ran; then the same for a PyTorch training step (tests/gpu/torch/pairs.py) and for programs that
nothing was fitted to (tests/gpu/torch/fresh.py). Those take turns in one process, in rounds: a prediction is compared with
the cure of its own round, and the table has the median of the rounds; one variant runs twice, which says how far two runs of
one thing are apart. Everything is kept in OUT; the table comes last, and is in OUT/predict.json. With --traces nothing
is run: DIR/scen/NAME.json.gz, DIR/pairs/VARIANT.ROUND.json.gz and DIR/fresh/… are read instead.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = HERE.parent.parent / "scenarios"
COPIES = "pin@aten::copy_+no-sync@aten::copy_"
FUSED = "fuse@Optimizer.step#Adam.step"
# From, to, edit. What `.item()` does is told by the operator's name.
PAIRS = [
    ("base", "pin", COPIES),
    ("base", "no_item", "drop:aten::item"),
    ("base", "fused", FUSED),
    ("base", "pin_no_item", f"{COPIES}+drop:aten::item"),
    ("base", "pin_no_item_fused", f"{COPIES}+drop:aten::item+{FUSED}"),
    ("pin_no_item_fused", "graph", "graph"),
    ("cpu", "base", "drop:D2H"),
]


def run(command, out, name, limit=90):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        (out / f"{name}.err").write_text(f"took more than {limit} s")
        return None
    (out / f"{name}.err").write_text(done.stderr)
    return done.stdout if done.returncode in (0, 1) else None


def whatif(cuptop, out, name, trace, edit, variant=None):
    command = [cuptop, "whatif", trace, "--edit", edit, "--json"]
    text = run(command + (["--variant", variant] if variant else []), out, name)
    return json.loads(text) if text else None


def row(kind, mistake, cure, edit, predicted, ran):
    row = dict(kind=kind, mistake=mistake, cure=cure, edit=edit)
    if predicted is None or ran is None:
        return dict(row, refused="no answer: see the .err files")
    first = predicted["predictions"][0]
    row |= dict(from_ns=predicted["measured_ns"], replay_error=predicted["replay_error"], cure_ns=ran["measured_ns"])
    row |= {k: first[k] for k in ("predicted_ns", "likely_ns", "low_ns", "high_ns", "refused")}
    if first["refused"] is None:
        row["off"] = first["likely_ns"] / ran["measured_ns"] - 1
        row["within"] = first["low_ns"] <= ran["measured_ns"] <= first["high_ns"]
    return row


def size(text):
    number, unit = str(text).split()
    return int(number) << {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def points(plan, pair):
    """Which of its name a variant is, from 1, where a sweep's value says so."""
    if "at" not in pair:
        return None
    value, nth = size(plan["sweep"]["from"]), 1
    while value < size(pair["at"]):
        value, nth = value * plan["sweep"]["factor"], nth + 1
    return nth


def scenarios(cuptop, out, traces):
    rows = []
    for path in sorted(SCENARIOS.glob("*.toml")):
        plan = tomllib.loads(path.read_text())
        pairs = plan.get("pair", [])
        if not pairs:
            continue
        name = path.stem
        if traces:
            trace = traces / "scen" / f"{name}.json.gz"
            if not trace.exists():
                print(f"{name}: not in {traces}", file=sys.stderr)
                continue
        else:
            trace = out / f"scen-{name}"
            command = [cuptop, "run", path, "--backend", "cuda", "--headless", "--json", "--save", trace]
            report = run(command, out, f"{name}.run")
            if report is None:
                rows.append(dict(kind=name, mistake="", cure="", edit="", refused="it did not run"))
                continue
            (out / f"{name}.report.json").write_text(report)
        # What a graph takes differs by how it is watched: node by node, as everything else here, and as a whole.
        whole = None
        if any("graph" in pair["edit"] for pair in pairs) and not traces:
            whole = out / f"scen-{name}-whole"
            command = [cuptop, "run", path, "--backend", "cuda", "--graphs", "whole", "--headless", "--save", whole]
            run(command, out, f"{name}.whole.run")
        for i, pair in enumerate(pairs):
            nth = points(plan, pair)
            label = lambda variant: variant if nth is None else f"{variant} #{nth}"
            mistake, cure = label(pair["mistake"]), label(pair["cure"])
            predicted = whatif(cuptop, out, f"{name}.{i}.mistake", trace, pair["edit"], mistake)
            ran = whatif(cuptop, out, f"{name}.{i}.cure", trace, "drop:nothing has this name", cure)
            at = f" @ {pair['at']}" if nth else ""
            rows.append(row(name, pair["mistake"] + at, pair["cure"], pair["edit"], predicted, ran))
            if whole and "graph" in pair["edit"]:
                ran = whatif(cuptop, out, f"{name}.{i}.whole", whole, "drop:nothing has this name", cure)
                rows.append(row(f"{name}, whole", pair["mistake"], pair["cure"], pair["edit"], predicted, ran))
    return rows


ROUNDS = 3
# What the programs of fresh.py are cured by.
FRESH = {
    "loader": "prefetch:load=4",
    "images": "pin@upload+no-sync@upload",
    "recurrent": "graph",
    "metrics": "drop:log",
    "pieces": "merge-copies@upload",
    "momentum": "fuse@Optimizer.step#SGD.step",
    "checks": "drop:check",
}


def torch(cuptop, out, traces, kind):
    """kind: "pairs" or "fresh". The rows, and by how much the one that ran twice differs from itself."""
    folder = (traces or out) / kind
    if kind == "pairs":
        pairs, again = PAIRS, ("base", "base-again")
        names = list(dict.fromkeys(n for pair in PAIRS for n in pair[:2])) + ["base"]
    else:
        pairs, again = [(f"{n}-mistake", f"{n}-cure", edit) for n, edit in FRESH.items()], ("metrics-mistake", "metrics-mistake-again")
        names = []
    if not traces:
        program = [sys.executable, HERE / "torch" / f"{kind}.py", "--all", folder, "--rounds", ROUNDS, *names]
        run(program, out, f"torch-{kind}", limit=240)
    place = lambda name, r: folder / f"{name}.{r}.json.gz"
    cache = {}

    def measured(name, r):
        if (name, r) not in cache:
            there = place(name, r).exists()
            key = f"{kind}-{name}.{r}"
            cache[name, r] = whatif(cuptop, out, key, place(name, r), "drop:nothing has this name") if there else None
        return cache[name, r]

    rows = []
    for mistake, cure, edit in pairs:
        turns = []
        for r in range(ROUNDS):
            predicted = None
            if measured(mistake, r):
                predicted = whatif(cuptop, out, f"{kind}-{mistake}-{cure}.{r}", place(mistake, r), edit)
            turns.append(row(f"torch {kind}", mistake, cure, edit, predicted, measured(cure, r)))
        good = [t for t in turns if "off" in t]
        if good:
            middle = sorted(good, key=lambda t: t["off"])[len(good) // 2]
            rows.append(dict(middle, rounds=[t["off"] for t in good]))
        else:
            rows.append(turns[0])
    apart = []
    for r in range(ROUNDS):
        a, b = (measured(n, r) for n in again)
        if a and b:
            apart.append(abs(a["measured_ns"] / b["measured_ns"] - 1))
    return rows, statistics.median(apart) if apart else None


def summary(rows):
    off = sorted(abs(r["off"]) for r in rows if "off" in r)
    if not off:
        return "none predicted"
    return f"{len(off)} of {len(rows)} predicted: median {statistics.median(off):.1%} off, worst {off[-1]:.1%}"


def show(rows):
    for r in rows:
        what = f"{r['kind']:18.18} {r['mistake'] + ' → ' + r['cure']:44.44}"
        if "off" in r:
            ms = lambda k: f"{r[k] / 1e6:9.3f}"
            inside = "inside" if r["within"] else ""
            print(what, ms("from_ns"), ms("likely_ns"), ms("cure_ns"), f"{r['off']:+7.1%}", f"{r['replay_error']:6.1%}", inside)
        else:
            print(what, "refused:", r["refused"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--traces", type=pathlib.Path)
    parser.add_argument("--no-torch", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    of_scenarios = scenarios(args.cuptop, args.out, args.traces)
    of_torch = {} if args.no_torch else {kind: torch(args.cuptop, args.out, args.traces, kind) for kind in ("pairs", "fresh")}
    (args.out / "predict.json").write_text(json.dumps(dict(scenarios=of_scenarios, torch=of_torch), indent=1))
    print(f"{'':18} {'':44} {'from ms':>9} {'predicted':>9} {'cure':>9} {'off':>7} {'replay':>6} interval")
    show(of_scenarios)
    for rows, _ in of_torch.values():
        show(rows)
    print("scenarios:", summary(of_scenarios))
    for kind, (rows, apart) in of_torch.items():
        floor = "not measured" if apart is None else f"{apart:.1%}"
        print(f"PyTorch, {kind}: {summary(rows)}; one against itself: {floor}")


if __name__ == "__main__":
    main()
