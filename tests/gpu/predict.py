#!/usr/bin/env python3
"""Predictions of cuptop against what runs on this machine's GPU.

usage: predict.py CUPTOP OUT [--traces DIR] [--no-torch]

Runs every bundled scenario that declares a pair of a mistake and its cure, predicts the cure from the mistake's records
and sets it beside the cure as it ran; then the same for a PyTorch training step (tests/gpu/torch/pairs.py), each
variant in a process of its own, `base` twice: how far two runs of one program are apart. Everything is kept in OUT;
the table comes last, and is in OUT/predict.json. With --traces nothing is run: DIR/scen/NAME.json.gz and
DIR/pairs/VARIANT.json.gz are read instead. Takes under 4 minutes with one H200.
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
# From, to, edit. What `.item()` does is told by the operator's name. That a loader sleeps leaves no record, so that no edit
# names what a prefetching one saves.
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
    row |= {k: first[k] for k in ("predicted_ns", "low_ns", "high_ns", "refused")}
    if first["refused"] is None:
        row["off"] = first["predicted_ns"] / ran["measured_ns"] - 1
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
        for i, pair in enumerate(pairs):
            nth = points(plan, pair)
            label = lambda variant: variant if nth is None else f"{variant} #{nth}"
            mistake, cure = label(pair["mistake"]), label(pair["cure"])
            predicted = whatif(cuptop, out, f"{name}.{i}.mistake", trace, pair["edit"], mistake)
            ran = whatif(cuptop, out, f"{name}.{i}.cure", trace, "drop:nothing has this name", cure)
            at = f" @ {pair['at']}" if nth else ""
            rows.append(row(name, pair["mistake"] + at, pair["cure"], pair["edit"], predicted, ran))
    return rows


def torch(cuptop, out, traces):
    names = list(dict.fromkeys(n for pair in PAIRS for n in pair[:2]))
    places, rows = {}, []
    for name in names + ([] if traces else ["base again"]):
        if traces:
            places[name] = traces / "pairs" / f"{name}.json.gz"
            continue
        places[name] = out / f"pair-{name.replace(' ', '-')}.json.gz"
        program = [sys.executable, HERE / "torch" / "pairs.py", name.split()[0], "--repeat", "3", "--profile", places[name]]
        steps = run(program, out, f"pair-{name}")
        if steps:
            (out / f"pair-{name}.step.json").write_text(steps)
    measured = {}
    for name, place in places.items():
        if place.exists():
            measured[name] = whatif(cuptop, out, f"pair-{name}.measured", place, "drop:nothing has this name")
    for mistake, cure, edit in PAIRS:
        predicted = None
        if measured.get(mistake):
            predicted = whatif(cuptop, out, f"pair-{mistake}-{cure}", places[mistake], edit)
        rows.append(row("torch", mistake, cure, edit, predicted, measured.get(cure)))
    apart = None
    if measured.get("base") and measured.get("base again"):
        a, b = (measured[n]["measured_ns"] for n in ("base", "base again"))
        apart = abs(a / b - 1)
    return rows, apart


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
            print(what, ms("from_ns"), ms("predicted_ns"), ms("cure_ns"), f"{r['off']:+7.1%}", f"{r['replay_error']:6.1%}", inside)
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
    of_torch, apart = ([], None) if args.no_torch else torch(args.cuptop, args.out, args.traces)
    (args.out / "predict.json").write_text(json.dumps(dict(scenarios=of_scenarios, torch=of_torch, apart=apart), indent=1))
    print(f"{'':18} {'':44} {'from ms':>9} {'predicted':>9} {'cure':>9} {'off':>7} {'replay':>6} interval")
    show(of_scenarios)
    show(of_torch)
    print("scenarios:", summary(of_scenarios))
    if of_torch:
        floor = "not measured" if apart is None else f"{apart:.1%}"
        print("PyTorch:  ", summary(of_torch), f"; base against itself: {floor}")


if __name__ == "__main__":
    main()
