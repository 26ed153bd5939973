#!/usr/bin/env python3
"""Predictions of cuptop against what runs on this machine's GPU.

usage: predict.py CUPTOP OUT [--traces DIR] [--no-torch] [--rounds R] [--only twins]
       predict.py --list

Runs every bundled scenario that declares a pair of a mistake and its cure, in rounds, predicts the cure from the mistake's records
and sets it beside the cure as it ran; then the same for a PyTorch training step (tests/gpu/torch/pairs.py) and for programs that
nothing was fitted to (tests/gpu/torch/fresh.py). Those take turns in one process, in rounds: a prediction is compared with
the cure of its own round, and the table has the median of the rounds; one variant runs twice, which says how far two runs of
one thing are apart. With --only twins only the eight programs of tests/gpu/torch/twins.py run, with 50 steps a turn (six minutes on an H100):
of each the prediction from the middle turn of the mistake, its interval, the median of the cure's turns, and how far these are apart. Everything is kept in OUT; the table comes last, and is in OUT/predict.json. With --traces nothing
is run: DIR/scen-NAME.ROUND, DIR/pairs/VARIANT.ROUND.json.gz and DIR/fresh/… are read instead.
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


# Set by --rounds.
ROUNDS = 3


def middle(turns, cures):
    """The turn in the middle of those that were predicted, and the range of the cure's own turns."""
    good = sorted((t for t in turns if "off" in t), key=lambda t: t["off"])
    if not good:
        return turns[0]
    row = dict(good[len(good) // 2], rounds=[t["off"] for t in turns if "off" in t], cures=cures)
    row["own"] = min(cures) <= row["likely_ns"] <= max(cures)
    return row


def recorded(cuptop, out, traces, path, name, kind=""):
    """The recordings of a scenario's rounds, made where there are none to read."""
    there = []
    for r in range(ROUNDS):
        trace = (traces or out) / f"scen-{name}{kind}.{r}"
        if not traces:
            more = ["--graphs", "whole"] if kind else []
            command = [cuptop, "run", path, "--backend", "cuda", "--hardware", "off", "--headless", "--json", "--save", trace, *more]
            report = run(command, out, f"{name}{kind}.{r}.run")
            if report is None:
                print(f"{name}{kind}: round {r} did not run", file=sys.stderr)
                continue
            (out / f"{name}{kind}.{r}.report.json").write_text(report)
        if trace.exists():
            there.append((r, trace))
    return there


def scenarios(cuptop, out, traces):
    rows = []
    for path in sorted(SCENARIOS.glob("*.toml")):
        plan = tomllib.loads(path.read_text())
        pairs = plan.get("pair", [])
        if not pairs:
            continue
        name = path.stem
        rounds = recorded(cuptop, out, traces, path, name)
        if not rounds:
            rows.append(dict(kind=name, mistake="", cure="", edit="", refused="it did not run, or is not there"))
            continue
        # What a graph takes differs by how it is watched: node by node, as everything else here, and as a whole.
        graphs = any("graph" in pair["edit"] for pair in pairs)
        whole = dict(recorded(cuptop, out, traces, path, name, "-whole")) if graphs else {}
        for i, pair in enumerate(pairs):
            nth = points(plan, pair)
            label = lambda variant: variant if nth is None else f"{variant} #{nth}"
            mistake, cure = label(pair["mistake"]), label(pair["cure"])
            at = f" @ {pair['at']}" if nth else ""
            for kind in ("", ", whole") if whole and "graph" in pair["edit"] else ("",):
                turns, cures = [], []
                for r, trace in rounds:
                    predicted = whatif(cuptop, out, f"{name}.{i}.mistake.{r}", trace, pair["edit"], mistake)
                    of_cure = whole.get(r) if kind else trace
                    ran = of_cure and whatif(cuptop, out, f"{name}{kind}.{i}.cure.{r}", of_cure, "drop:nothing has this name", cure)
                    turns.append(row(f"{name}{kind}", pair["mistake"] + at, pair["cure"], pair["edit"], predicted, ran))
                    cures += [ran["measured_ns"]] if ran else []
                rows.append(middle(turns, cures))
    return rows


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
        run(program, out, f"torch-{kind}", limit=120 * ROUNDS)
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
        rows.append(middle(turns, [m["measured_ns"] for r in range(ROUNDS) if (m := measured(cure, r))]))
    apart = []
    for r in range(ROUNDS):
        a, b = (measured(n, r) for n in again)
        if a and b:
            apart.append(abs(a["measured_ns"] / b["measured_ns"] - 1))
    return rows, statistics.median(apart) if apart else None


def twins(cuptop, out, traces):
    """A row for each of the eight programs: what was predicted, and what was measured in all turns of the cure."""
    sys.path.insert(0, str(HERE / "torch"))
    from twins import EDITS

    folder = (traces or out) / "twins"
    if not traces:
        # What a graph's launch and a pinned copy take is in this GPU's profile.
        run([cuptop, "calibrate"], out, "calibrate")
        run([sys.executable, HERE / "torch" / "twins.py", "--all", folder, "--rounds", ROUNDS], out, "torch-twins", limit=420)
    walls = json.loads((folder / "walls.json").read_text()) if (folder / "walls.json").exists() else {}
    rows = []
    for name, edit in EDITS.items():
        asked = dict(mistake=edit, cure="drop:nothing has this name")
        turns = {side: [] for side in asked}
        for r in range(ROUNDS):
            for side, of in asked.items():
                trace = folder / f"{name}-{side}.{r}.json.gz"
                if trace.exists() and (answer := whatif(cuptop, out, f"twins-{name}-{side}.{r}", trace, of)):
                    turns[side].append(answer)
        rows.append(twin(name, edit, turns) | dict(walls={turn: ms for turn, ms in walls.items() if turn.startswith(name + "-")}))
    return rows


def twin(name, edit, turns):
    """The turn in the middle of those of the mistake, beside the median of the cure's."""
    mistakes = sorted(turns["mistake"], key=lambda answer: answer["measured_ns"])
    cures = sorted(answer["measured_ns"] for answer in turns["cure"])
    row = dict(name=name, edit=edit, cures=cures, mistakes=[answer["measured_ns"] for answer in mistakes])
    if not mistakes or not cures:
        return dict(row, refused="it did not run, or has no answer: see the .err files")
    asked = mistakes[len(mistakes) // 2]
    first, truth = asked["predictions"][0], statistics.median(cures)
    row |= dict(from_ns=asked["measured_ns"], truth_ns=truth, own=(cures[-1] - cures[0]) / truth, replay_error=asked["replay_error"], of=asked["scope"])
    row |= {key: first[key] for key in ("predicted_ns", "likely_ns", "low_ns", "high_ns", "refused", "notes", "unknowns")}
    if first["refused"] is None:
        row |= dict(off=first["likely_ns"] / truth - 1, within=first["low_ns"] <= truth <= first["high_ns"], width=first["high_ns"] / max(first["low_ns"], 1))
    return row


def show_twins(rows):
    print(f"{'pair':13} {'edit':48} {'from ms':>8} {'predicted':>9} {'interval':>18} {'measured':>8} {'off':>7} {'own':>6} {'wide':>5} {'steps':>5} within?")
    for r in rows:
        if "off" not in r:
            print(f"{r['name']:13} {r['edit']:48} refused: {r['refused']}")
            continue
        ms = lambda key: f"{r[key] / 1e6:.3f}"
        value = ms("predicted_ns") if r["predicted_ns"] is not None else f"({ms('likely_ns')})"
        between = f"{ms('low_ns')} to {ms('high_ns')}"
        within = "yes" if r["within"] else "no"
        print(f"{r['name']:13} {r['edit']:48} {ms('from_ns'):>8} {value:>9} {between:>18} {ms('truth_ns'):>8} {r['off']:>+7.1%} {r['own']:>6.1%} {r['width']:>5.2f} {r['of']['steps']:>5} {within}")
    for r in rows:
        turns = ", ".join(f"{turn.split('-', 1)[1]} {time:.3f}" for turn, time in r["walls"].items())
        print(f"{r['name']}: by the host's clock, ms a step: {turns or 'not measured'}")
    told = [r for r in rows if "off" in r]
    if told:
        beyond = statistics.median(max(abs(r["off"]) - r["own"], 0) for r in told)
        off, own = (statistics.median(abs(r[key]) for r in told) for key in ("off", "own"))
        values = sum(r["predicted_ns"] is not None for r in told)
        print(
            f"{len(told)} of {len(rows)} predicted, {values} with a value; off by {off:.1%} at the median, beyond the twins' own spread "
            f"({own:.1%}) by {beyond:.1%}; within the interval {sum(r['within'] for r in told)}; {statistics.median(r['width'] for r in told):.2f} wide"
        )


def summary(rows):
    """Of what has a predicted time, how far it is off; of what has an interval alone, how often the cure lies in it."""
    points = [r for r in rows if "off" in r and r["predicted_ns"] is not None]
    ranges = [r for r in rows if "off" in r and r["predicted_ns"] is None]
    off = sorted(abs(r["off"]) for r in points)
    text = f"{len(points)} of {len(rows)} predicted"
    if off:
        text += f": median {statistics.median(off):.1%} off, worst {off[-1]:.1%}"
        missed = [abs(r["off"]) for r in points if not r["own"] and not r["within"]]
        text += f", worst outside the interval and the cure's own turns {max(missed, default=0):.1%}"
    if ranges:
        text += f"; {len(ranges)} by an interval alone, the cure in it: {sum(r['within'] for r in ranges)}"
    return text


def show(rows):
    for r in rows:
        what = f"{r['kind']:18.18} {r['mistake'] + ' → ' + r['cure']:44.44}"
        if "off" in r:
            ms = lambda k: f"{r[k] / 1e6:9.3f}" if r[k] is not None else f"{'interval':>9}"
            inside = [word for word, holds in (("inside", r["within"]), ("own turns", r["own"])) if holds]
            cures = f"{min(r['cures']) / 1e6:.3f} to {max(r['cures']) / 1e6:.3f}"
            between = f"{r['low_ns'] / 1e6:.3f} to {r['high_ns'] / 1e6:.3f}"
            print(what, ms("from_ns"), ms("predicted_ns"), ms("cure_ns"), f"{r['off']:+7.1%}", f"{r['replay_error']:6.1%}", f"{between:20} {cures:20}", *inside)
        else:
            print(what, "refused:", r["refused"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", choices=["twins"])
    parser.add_argument("--traces", type=pathlib.Path)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    globals()["ROUNDS"] = args.rounds
    if args.list:
        subprocess.run([sys.executable, HERE / "torch" / "twins.py", "--list"], check=True)
        for mistake, cure, edit in PAIRS + [(name, "cure", edit) for name, edit in FRESH.items()]:
            print(f"{mistake} → {cure}: {edit}")
        return
    if not args.cuptop or not args.out:
        parser.error("say CUPTOP and OUT")
    args.out.mkdir(parents=True, exist_ok=True)
    if args.only:
        rows = twins(args.cuptop, args.out, args.traces)
        (args.out / "twins.json").write_text(json.dumps(rows, indent=1))
        show_twins(rows)
        return
    of_scenarios = scenarios(args.cuptop, args.out, args.traces)
    of_torch = {} if args.no_torch else {kind: torch(args.cuptop, args.out, args.traces, kind) for kind in ("pairs", "fresh")}
    (args.out / "predict.json").write_text(json.dumps(dict(scenarios=of_scenarios, torch=of_torch), indent=1))
    print(f"{'':18} {'':44} {'from ms':>9} {'predicted':>9} {'cure':>9} {'off':>7} {'replay':>6} {'interval':20} {'turns of the cure':20}")
    show(of_scenarios)
    for rows, _ in of_torch.values():
        show(rows)
    print("scenarios:", summary(of_scenarios))
    for kind, (rows, apart) in of_torch.items():
        floor = "not measured" if apart is None else f"{apart:.1%}"
        print(f"PyTorch, {kind}: {summary(rows)}; one against itself: {floor}")


if __name__ == "__main__":
    main()
