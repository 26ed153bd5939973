#!/usr/bin/env python3
"""Programs that cuptop's rules were not written for, against what their sources say is true of them.

usage: strangers.py CUPTOP OUT [--only a,b] [--seconds N] [--no-cures] [--pack FILE.tar.gz [--max-mib 15]]
       strangers.py CUPTOP --reports-only OUT [--only a,b]
       strangers.py --list

Runs each program of tests/gpu/strangers under `cuptop trace --headless`, reads the recording by `cuptop report --json`, and checks it
figure by figure against the truth in the program's header: what bounds it, which findings must be there, which would accuse it falsely,
how many steps it has and how long they are (by its own stamps, within 5 % of their mean or median). A program with a cure also runs cured, recorded and alone:
what a finding's edit was predicted to save is set beside what the cure saved. It needs a GPU and whatever of PyTorch, JAX, CuPy, Numba,
Triton, transformers, torch_geometric and nvcc is there; what lacks its package "did not run". It takes some seven minutes on an H100,
and no more than --seconds: all programs run first, then the cures.

OUT/NAME has the recording (rec), report.json, report.txt, stamps and log of a program, OUT/NAME.cured of its cure. The table comes last, and is
in OUT/table.txt and OUT/strangers.json. --reports-only reads recordings again, with another cuptop and the truths of this checkout, and needs no GPU.
--pack writes FILE.0.tar.gz, FILE.1.tar.gz … of at most --max-mib each, six at most; recordings that do not fit are left out, largest first.

A header has after the line `truth`, a line each:
  bound_by   classes of the headline that are right; cold-start is a headline that says so, any is any
  steps      "1" and other factors that are right too ("8": eight parts of a step, "0.2": five together); count: only how many; none
  must       rules, one of which must be found; several lines of `must` must each have one
  may, never rules that are right or do no harm, and rules that accuse falsely ("rule:warning": a remark is none)
  cured      rules whose cure the program can show; cured_bound_by, cured_never: the truth of the cured program
  needs, beside, ends, why   packages; a program that runs meanwhile; its exit code; one sentence
"""
import argparse
import concurrent.futures
import importlib.util
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent / "strangers"
HELPERS = {"stamp", "beside", "gauge"}
LIMIT, PACKS = 40, 6
# What depends on the machine, or is of cuptop's own doing, accuses no program.
OF_THE_MACHINE = {"cold-start", "machine", "no-cpu"}
WORDS = {"bound_by", "steps", "may", "never", "cured", "cured_bound_by", "cured_never", "needs", "beside", "ends"}


def truth(path):
    """The header of a program."""
    found, there = dict(must=[], path=path), False
    for line in path.read_text().splitlines():
        line = line.strip().removeprefix("//").strip()
        there = there or line == "truth"
        key, colon, rest = line.partition(":")
        if not there or not colon:
            if there and (line == '"""' or line.startswith("#")):
                break
            continue
        if key == "must":
            found["must"] += [rest.split()] if rest.split() else []
        elif key == "why":
            found["why"] = rest.strip()
        elif key in WORDS:
            found[key] = rest.split()
        else:
            raise SystemExit(f"{path}: what is {key}?")
    missing = {"bound_by", "steps", "may", "never", "why"} - set(found)
    if missing:
        raise SystemExit(f"{path}: its header lacks {sorted(missing)}")
    return found


def programs(only):
    # Those of judge_strangers.py lie in the same folder.
    others = HELPERS | set(tomllib.loads((HERE / "truths.toml").read_text()))
    paths = [p for p in HERE.iterdir() if p.suffix in (".py", ".cu") and p.stem not in others]
    unknown = set(only or ()) - {p.stem for p in paths}
    if unknown:
        raise SystemExit(f"no such program: {', '.join(sorted(unknown))}")
    return {p.stem: truth(p) for p in sorted(paths, key=lambda p: p.stem) if not only or p.stem in only}


def run(command, log, limit, **env):
    """The exit code, or None where it took longer than `limit`; it and what it started are ended then."""
    with open(log, "w") as out:
        out.write(" ".join(map(str, command)) + "\n")
        out.flush()
        child = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 env={**os.environ, **env}, cwd=HERE, start_new_session=True)
        try:
            return child.wait(max(1, limit))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None


def last_line(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()[1:] if line.strip()]
    return lines[-1][:100] if lines else "said nothing"


def prepare(out, chosen):
    """Compiles the C++ programs and loads the packages once, all at a time; by name what keeps a program from running."""
    lacking, jobs = {}, {}
    packages = sorted({p for it in chosen.values() for p in it.get("needs", [])})
    there = [p for p in packages if importlib.util.find_spec(p)]
    nvcc = shutil.which("nvcc") or next(iter(pathlib.Path("/usr/local").glob("cuda*/bin/nvcc")), None)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for name, it in chosen.items():
            absent = [p for p in it.get("needs", []) if p not in there]
            if absent:
                lacking[name] = f"no {', '.join(absent)} here"
            if it["path"].suffix == ".cu":
                if nvcc is None:
                    lacking[name] = "no nvcc here"
                    continue
                command = [nvcc, "-O2", "-std=c++17", "-arch=native", "-I", HERE, it["path"], "-o", out / "bin" / name]
                jobs[name] = pool.submit(run, command, out / "bin" / f"{name}.log", 90)
        # The first import of a package on a machine takes many times the later ones: no program should pay for it.
        loads = {p: pool.submit(run, [sys.executable, "-c", f"import {p}"], out / "bin" / f"import-{p}.log", 90) for p in there}
    for name, job in jobs.items():
        if job.result() != 0:
            lacking[name] = "nvcc: " + last_line(out / "bin" / f"{name}.log")
    for name, it in chosen.items():
        bad = [p for p in it.get("needs", []) if p in loads and loads[p].result() != 0]
        if bad and name not in lacking:
            lacking[name] = f"import {bad[0]}: " + last_line(out / "bin" / f"import-{bad[0]}.log")
    return lacking


def command_of(out, it):
    path = it["path"]
    return [sys.executable, path] if path.suffix == ".py" else [out / "bin" / path.stem]


def record(cuptop, out, name, it, mode, limit):
    """Runs a program under cuptop; why it did not, or None."""
    folder = out / (name if mode == "mistake" else f"{name}.cured")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    other = None
    if "beside" in it:
        other = subprocess.Popen([sys.executable, HERE / it["beside"][0]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if other.stdout.readline().strip() != "ready":
            other.kill()
            return "the program beside it did not run"
    try:
        command = [cuptop, "trace", "--headless", "--save", folder / "rec", "--", *command_of(out, it)]
        code = run(command, folder / "log.txt", limit, STRANGER_MODE=mode, STRANGER_STAMPS=str(folder), PYTHONDONTWRITEBYTECODE="1")
    finally:
        if other:
            other.kill()
            other.wait()
    if code is None:
        return f"took more than {limit:.0f} s"
    # cuptop ends with the program's code, or says with 4 that it failed.
    if code not in (0, 4, *map(int, it.get("ends", []))) or (code and "ends" not in it):
        return f"ended with {code}: {last_line(folder / 'log.txt')}"
    return None if (folder / "rec").exists() else "left no recording"


def alone(out, name, it, limit):
    """Runs mistake and cure without cuptop, in one process where that loads a framework."""
    folder = out / name / "alone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for mode in ["mistake+cured"] if it["path"].suffix == ".py" else ["mistake", "cured"]:
        run(command_of(out, it), folder / "log.txt", limit, STRANGER_MODE=mode, STRANGER_STAMPS=str(folder), PYTHONDONTWRITEBYTECODE="1")


def report(cuptop, folder):
    """Reads a recording: leaves report.json and report.txt, and gives why that failed, or None."""
    for name, more in (("report.json", ["--json"]), ("report.txt", [])):
        try:
            done = subprocess.run([str(cuptop), "report", str(folder / "rec"), *more], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "its report took more than 120 s"
        if done.returncode not in (0, 1):
            return f"report ended with {done.returncode}: {done.stderr.strip()[-100:]}"
        (folder / name).write_text(done.stdout)
    return None


def load(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def check_headline(wanted, it):
    verdict = (it.get("verdicts") or [{}])[0]
    bound, text = verdict.get("bound_by", "nothing"), verdict.get("text", "")
    right = "any" in wanted or bound in wanted or ("cold-start" in wanted and "cold start" in text)
    return right, bound, text


def found_rules(it, start_up=True):
    """By rule its worst severity; what became a part of another finding is found, too."""
    rules = {}
    lists = (it.get("findings") or []) + ((it.get("start_up_findings") or []) if start_up else [])
    for finding in lists:
        for rule in [finding["rule"], *finding.get("with", [])]:
            if rules.get(rule) != "warning":
                rules[rule] = finding["severity"]
    return rules


def names(rules, listed):
    """Those of `rules` that a list names; "rule:warning" names it at that severity alone."""
    found = []
    for word in listed:
        rule, _, severity = word.partition(":")
        if rule in rules and (not severity or rules[rule] == severity):
            found.append(rule)
    return found


def check_findings(must, may, never, rules):
    wrong = [f"accuses {rule}" for rule in names(rules, never)]
    wrong += [f"lacks {' or '.join(some)}" for some in must if not names(rules, some)]
    allowed = set(names(rules, may)) | {word for some in must for word in some} | OF_THE_MACHINE | set(names(rules, never))
    return wrong, sorted(rule for rule in rules if rule not in allowed)


def check_steps(wanted, it, stamps):
    """Whether number and length are right, and how that is said."""
    if wanted == ["none"] or not stamps:
        return True, "not judged" if wanted == ["none"] else "no stamps"
    steps = max(it.get("steps") or [], key=lambda s: s["count"], default=None)
    if steps is None:
        return False, f"none of {stamps['steps']}"
    factors = [1.0] if wanted == ["count"] else [float(word) for word in wanted]
    told = []
    for factor in factors:
        fewest, most = stamps["steps"] * factor, (stamps["steps"] + stamps["warm"]) * factor
        lengths = {stamps["ns"], stamps["mean_ns"], stamps["median_ns"]} if factor == 1 else {stamps["mean_ns"]}
        off = min((steps["median_ns"] / (length / factor) - 1 for length in lengths), key=abs)
        is_number = fewest * 0.95 - 2 <= steps["found"] <= most * 1.05 + 2
        told.append((is_number and (wanted == ["count"] or abs(off) <= 0.05), is_number, factor, off))
    right, _, factor, off = max(told, key=lambda t: (t[0], t[1], -abs(t[3])))
    text = f"{steps['found']} of {stamps['steps'] * factor:.0f}, {steps['median_ns'] / 1e6:.3f} ms"
    return right, text + ("" if wanted == ["count"] else f" ({off:+.1%})")


def check_saving(rules, it, measured, free):
    """What a finding's edit was predicted to leave of a step, beside what the cure left: recorded, and alone."""
    ratios = [s["cured"]["ns"] / s["mistake"]["ns"] if s.get("cured") and s.get("mistake") else None for s in (measured, free)]
    if ratios == [None, None]:
        return None, "its cure did not run"
    says = ", ".join(f"{1 - ratio:.1%} {how}" for ratio, how in zip(ratios, ("recorded", "alone")) if ratio)
    finding = next((f for f in it.get("findings") or [] if f["rule"] in rules), None)
    if finding is None:
        return None, f"no such finding; the cure saves {says}"
    made = finding.get("predicted")
    if not made:
        return None, f"{finding['rule']}: nothing predicted ({finding.get('refused') or 'no edit'}); the cure saves {says}"
    part = lambda key: (made.get(key) or made["likely_ns"]) / made["measured_ns"]
    likely, low, high = part("likely_ns"), part("low_ns"), part("high_ns")
    inside = [low <= ratio <= high or abs(ratio / likely - 1) <= 0.10 for ratio in ratios if ratio]
    return all(inside), f"{finding['rule']}: {1 - likely:.1%} predicted ({1 - high:.1%} to {1 - low:.1%}), {says}"


def judge(out, name, it, mode="mistake"):
    """A row of the table, from what stands in the program's folder."""
    folder = out / (name if mode == "mistake" else f"{name}.cured")
    row = dict(name=folder.name, why=it["why"])
    told = load(folder / "report.json")
    if told is None:
        return dict(row, did_not_run="left no report")
    mistake = mode == "mistake"
    bound_by = it["bound_by"] if mistake else it.get("cured_bound_by", ["any"])
    never = it["never"] if mistake else it.get("cured_never", it["cured"])
    # What is allowed of the cured program is not said: only what must not be there any more.
    rules = found_rules(told)
    may = it["may"] if mistake else list(rules)
    right, bound, row["headline"] = check_headline(bound_by, told)
    row["bound"] = bound
    row["wrong"] = [] if right else [f"bound by {bound}, not {' or '.join(bound_by)}"]
    wrong, row["unlisted"] = check_findings(it["must"] if mistake else [], may, never, rules)
    row["wrong"] += wrong
    row["rules"] = rules
    stamps = load(folder / f"{mode}.json")
    right, row["steps"] = check_steps(it["steps"] if mistake else ["none"], told, stamps)
    if not right:
        row["wrong"].append(f"steps: {row['steps']}")
    if mistake and "cured" in it:
        measured = {"mistake": stamps, "cured": load(out / f"{name}.cured" / "cured.json")}
        free = {which: load(folder / "alone" / f"{which}.json") for which in ("mistake", "cured")}
        right, row["saving"] = check_saving(it["cured"], told, measured, free)
        if right is False:
            row["wrong"].append("the saving")
    return row


def pack(out, file, max_mib):
    """Packs OUT, largest recordings left out first, and says so."""
    bound = int(max_mib * (1 << 20))
    stem = str(file).removesuffix(".tar.gz")

    def packed(paths):
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w:gz") as tar:
            for path in paths:
                tar.add(path, arcname=str(path.relative_to(out)))
        return held.getvalue()

    recordings = sorted(path for path in out.glob("*/rec") if path.is_dir())
    def is_rest(path):
        inside = path.relative_to(out).parts
        return path.is_file() and path.suffix != ".gz" and inside[0] != "bin" and "rec" not in inside

    rest = [path for path in sorted(out.rglob("*")) if is_rest(path)]
    # What is packed together is no larger than its parts by themselves.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sizes = dict(zip(recordings, pool.map(lambda r: len(packed([r])), recordings)))
    first = len(packed(rest))
    kept, left_out = sorted(recordings, key=lambda r: -sizes[r]), []
    while True:
        bins = [[first, list(rest)]]
        fits = True
        for recording in kept:
            room = next((b for b in bins if b[0] + sizes[recording] <= bound), None)
            if room is None and len(bins) < PACKS and sizes[recording] <= bound:
                room = [0, []]
                bins.append(room)
            if room is None:
                fits = False
                break
            room[0] += sizes[recording]
            room[1].append(recording)
        if fits or not kept:
            break
        left_out.append(kept.pop(0))
    for recording in left_out:
        print(f"left out of the packs: {recording.parent.name}, {sizes[recording] / (1 << 20):.1f} MiB")
    for i, (_, paths) in enumerate(bins):
        data = packed(paths)
        pathlib.Path(f"{stem}.{i}.tar.gz").write_bytes(data)
        print(f"{stem}.{i}.tar.gz: {len(data) / (1 << 20):.1f} MiB, {sum(p in sizes for p in paths)} recordings")


def table(rows):
    lines, ran = [], [row for row in rows if "did_not_run" not in row]
    for row in rows:
        if "did_not_run" in row:
            lines.append(f"----  {row['name']:18} did not run: {row['did_not_run']}")
            continue
        rules = " ".join(rule + ("" if severity == "warning" else "'") for rule, severity in row["rules"].items())
        lines.append(f"{'FAIL' if row['wrong'] else 'pass'}  {row['name']:18} {row['bound']:8} {row['steps']:34} {rules}")
        lines += [f"      {'':18} ! {wrong}" for wrong in row["wrong"]]
        if row["wrong"]:
            lines.append(f"      {'':18}   headline: {row['headline']}")
        if row["unlisted"]:
            lines.append(f"      {'':18} ? not listed: {' '.join(row['unlisted'])}")
        if "saving" in row:
            lines.append(f"      {'':18}   {row['saving']}")
    wrong = [what for row in ran for what in row["wrong"]]
    count = lambda begin: sum(what.startswith(begin) for what in wrong)
    lines.append("A rule with ' is a remark. ! is wrong, ? neither asked for nor forbidden.")
    lines.append(f"{sum(not row['wrong'] for row in ran)} of {len(ran)} right, {len(rows) - len(ran)} did not run; wrong: {count('bound by')} headlines, "
                 f"{count('accuses')} false accusations, {count('lacks')} missed findings, {count('steps')} steps, {count('the saving')} savings")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--no-cures", action="store_true")
    parser.add_argument("--reports-only", action="store_true")
    parser.add_argument("--pack")
    parser.add_argument("--max-mib", type=float, default=15)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_intermixed_args()
    chosen = programs(args.only)
    if args.list:
        for name, it in chosen.items():
            must = "; ".join(" or ".join(some) for some in it["must"]) or "nothing"
            print(f"{name:14} bound by {' or '.join(it['bound_by'])}; finds {must}; {it['why']}")
        return 0
    if not args.cuptop or not args.out:
        parser.error("say CUPTOP and OUT")
    found = shutil.which(args.cuptop)
    if not found:
        parser.error(f"{args.cuptop} is no program")
    cuptop, out = pathlib.Path(found).resolve(), args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + args.seconds
    failed, reports = load(out / "failed.json") or {}, {}
    with concurrent.futures.ThreadPoolExecutor(2 if args.reports_only else 1) as pool:
        # A report is read beside the next program, one at a time: that one shall have most of the cores.
        if args.reports_only:
            # What failed as it ran has no truth to be held to.
            kept = [f for name in chosen for f in (out / name, out / f"{name}.cured") if (f / "rec").is_dir() and f.name not in failed]
            reports = {folder.name: pool.submit(report, cuptop, folder) for folder in kept}
        else:
            (out / "bin").mkdir(exist_ok=True)
            lacking = prepare(out, chosen)
            passes = [(name, "mistake") for name in chosen]
            passes += [] if args.no_cures else [(name, "cured") for name, it in chosen.items() if "cured" in it]
            for name, mode in passes:
                folder, it = name if mode == "mistake" else f"{name}.cured", chosen[name]
                failed.pop(folder, None)
                left = end - time.monotonic()
                reason = lacking.get(name) or (None if left > 15 else "the time was over")
                began = time.monotonic()
                try:
                    reason = reason or record(cuptop, out, name, it, mode, min(LIMIT, left))
                    if not reason and mode == "cured":
                        alone(out, name, it, min(LIMIT, max(1, end - time.monotonic())))
                except Exception as error:  # one program that breaks must not cost the others
                    reason = f"{type(error).__name__}: {error}"
                print(f"{folder}: {reason or f'{time.monotonic() - began:.1f} s'}", flush=True)
                if reason:
                    failed[folder] = reason
                else:
                    reports[folder] = pool.submit(report, cuptop, out / folder)
        for folder, job in reports.items():
            try:
                reason = job.result()
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            if reason:
                failed[folder] = reason
    (out / "failed.json").write_text(json.dumps(failed, indent=1))
    rows = []
    for name, it in chosen.items():
        modes = ["mistake"] + (["cured"] if "cured" in it and not args.no_cures else [])
        for folder, mode in [(name if mode == "mistake" else f"{name}.cured", mode) for mode in modes]:
            try:
                row = dict(name=folder, did_not_run=failed[folder]) if folder in failed else judge(out, name, it, mode)
            except Exception as error:
                row = dict(name=folder, did_not_run=f"its report is not as expected: {type(error).__name__}: {error}")
            rows.append(row)
    lines = table(rows)
    (out / "strangers.json").write_text(json.dumps(rows, indent=1))
    (out / "table.txt").write_text("\n".join(lines) + "\n")
    if args.pack:
        try:
            pack(out, pathlib.Path(args.pack), args.max_mib)
        except Exception as error:
            print(f"the packs failed: {type(error).__name__}: {error}")
    print("\n".join(lines))
    return 1 if any(row.get("wrong") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
