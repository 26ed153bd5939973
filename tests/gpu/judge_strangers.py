#!/usr/bin/env python3
"""Does a build say of programs what somebody says who knows their source: the cause, its place, the change?

usage: judge_strangers.py CUPTOP OUT [--slice 1/4] [--only a,b] [--seconds N] [--steady S] [--parallel no] [--pack MIB] [--from DIR]
       judge_strangers.py --again JUDGED.json...
       judge_strangers.py --check | --list

The programs and their truths are those of tests/gpu/strangers/truths.toml. Each runs as it is and `--cured`, alone and under
`cuptop trace --headless --json=brief`, and says itself how long a step takes. Printed are, a program, whether
  say      the headline or the first finding has the words of the truth, and none that would be wrong
  place    the line to mend (or one where it shows) stands in headline or findings
  change   the argument or call to change does
  promise  what the cure brought lies in what was promised
  twin     nothing accuses the cured program
and last a short table. OUT/judged.txt has what was printed, OUT/reports.txt each `cuptop report`, OUT/judged.json both for --again, which holds
them to the truths of this checkout once more and needs no GPU. --slice 1/4 takes each fourth program, and its files are called so.
--seconds is for all of it: what is not begun by then did not run. --steady is how long a program makes steps. Unless --parallel is no,
the next program loads its packages while one runs, and a recording is read meanwhile. --pack keeps recordings, smallest first,
as OUT/recordings.N.tar.gz of at most so many MiB, and --from reads them unpacked with another build, without a GPU.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent / "strangers"
LIMIT = 60
MUST = {"kind", "file", "expert", "at", "line", "say", "wrong", "change"}
MAY = {"also", "place", "cured_wrong", "saves", "needs", "near", "promise", "tell"}
UNITS = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4}


def truths():
    return tomllib.loads((HERE / "truths.toml").read_text())


def chosen(args):
    every = truths()
    unknown = set(args.only or ()) - set(every)
    if unknown:
        raise SystemExit(f"no such program: {', '.join(sorted(unknown))}")
    names = [name for name in every if not args.only or name in args.only]
    if args.slice:
        part, parts = map(int, args.slice.split("/"))
        names = names[part - 1 :: parts]
    return {name: every[name] for name in names}


def check():
    """Says what in the truths does not fit the programs."""
    wrong, every = [], truths()
    for name, it in every.items():
        wrong += [f"{name}: lacks {key}" for key in sorted(MUST - set(it) - ({"line", "at"} if it.get("near") else set()))]
        wrong += [f"{name}: what is {key}?" for key in sorted(set(it) - MUST - MAY)]
        path = HERE / it.get("file", "")
        if not path.is_file() or path.stem != name:
            wrong.append(f"{name}: no file {path.name}")
            continue
        lines = path.read_text().splitlines()
        for place in it.get("at", []) + it.get("also", []):
            file, _, number = place.rpartition(":")
            if file != path.name or not 0 < int(number) <= len(lines):
                wrong.append(f"{name}: there is no {place}")
        if it.get("at") and not any(it["line"] in lines[int(place.rpartition(":")[2]) - 1] for place in it["at"]):
            found = [n for n, line in enumerate(lines, 1) if it["line"] in line]
            wrong.append(f"{name}: {it['line']!r} stands in {found or 'no line'}, not in {it['at']}")
        for key in ("say", "wrong", "change", "place", "cured_wrong", "tell"):
            try:
                re.compile(it.get(key, ""))
            except re.error as error:
                wrong.append(f"{name}: {key}: {error}")
    print("\n".join(wrong) or f"{len(every)} truths fit their programs")
    return 1 if wrong else 0


# ---- running

def nvcc():
    return shutil.which("nvcc") or next(iter(pathlib.Path("/usr/local").glob("cuda*/bin/nvcc")), None)


def prepare(work, programs):
    """Compiles the C++ programs and loads the packages once; by name what keeps a program from running."""
    lacking, compiler = {}, nvcc()
    (work / "bin").mkdir(exist_ok=True)
    needs = sorted({package for it in programs.values() for package in it.get("needs", [])})
    there = [package for package in needs if importlib.util.find_spec(package)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        quiet = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        loads = {p: pool.submit(subprocess.run, [sys.executable, "-c", f"import {p}"], **quiet) for p in there}
        builds = {}
        for name, it in programs.items():
            if it["file"].endswith(".cu"):
                command = [str(compiler), "-O2", "-std=c++17", "-arch=native", str(HERE / it["file"]), "-o", str(work / "bin" / name)]
                builds[name] = pool.submit(subprocess.run, command, **quiet) if compiler else None
        for name, it in programs.items():
            absent = [p for p in it.get("needs", []) if p not in there]
            if absent:
                lacking[name] = f"no {', '.join(absent)} here"
            for package in it.get("needs", []):
                try:
                    if package in loads and loads[package].result().returncode:
                        lacking[name] = f"import {package} failed"
                except subprocess.TimeoutExpired:
                    pass
            if name in builds:
                if builds[name] is None:
                    lacking[name] = "no nvcc here"
                    continue
                try:
                    done = builds[name].result()
                    if done.returncode:
                        lacking[name] = "nvcc: " + done.stdout.strip()[-200:]
                except subprocess.TimeoutExpired:
                    lacking[name] = "nvcc took more than 120 s"
    return lacking


class Run:
    """One run of a program, alone or traced, that waits with its packages loaded until `go`."""

    def __init__(self, cuptop, work, name, it, cure, traced, args):
        self.name, self.cure, self.traced = name, cure, traced
        self.folder = work / (name + (".cured" if cure else ""))
        self.folder.mkdir(parents=True, exist_ok=True)
        kind = "traced" if traced else "alone"
        self.log, self.gate = self.folder / f"{kind}.log", self.folder / f"{kind}.go"
        self.gate.unlink(missing_ok=True)
        path = HERE / it["file"]
        command = [sys.executable, str(path)] if path.suffix == ".py" else [str(work / "bin" / name)]
        command += ["--cured"] if cure else []
        if traced:
            shutil.rmtree(self.folder / "rec", ignore_errors=True)
            command = [str(cuptop), "trace", "--headless", "--json=brief", "--save", str(self.folder / "rec"), "--", *command]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "GAUGE_GATE": str(self.gate)}
        # What a program has compiled alone it need not compile again as it is recorded.
        env.update(JAX_COMPILATION_CACHE_DIR=str(work / "jax"), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0", JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1")
        env["GAUGE_SECONDS"] = str(args.steady if traced else min(args.steady, 2.0))
        with open(self.log, "w") as out:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=self.folder, start_new_session=True
            )

    def go(self, limit):
        """Lets it run to its end; its step in ms, or why there is none."""
        self.gate.touch()
        try:
            code = self.child.wait(max(1, limit))
        except subprocess.TimeoutExpired:
            self.end()
            return None, f"took more than {limit:.0f} s"
        text = self.log.read_text(errors="replace")
        said = re.findall(r"^step_ms ([\d.]+)$", text, re.M)
        if not said or (code and not self.traced):
            lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("{")]
            return None, f"ended with {code}: {' | '.join(lines[-3:])[-300:] or 'said nothing'}"
        return float(said[-1]), None

    def end(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()


def read(cuptop, folder):
    """What a recording says: the text, and the parts of the JSON that are judged."""
    rec = folder / "rec"
    texts = []
    for more in ([], ["--json"]):
        try:
            done = subprocess.run([str(cuptop), "report", str(rec), *more], capture_output=True, text=True, timeout=150)
        except subprocess.TimeoutExpired:
            return dict(failed="its report took more than 150 s")
        if done.returncode not in (0, 1):
            return dict(failed=f"report ended with {done.returncode}: {done.stderr.strip()[-200:]}")
        texts.append(done.stdout)
    try:
        full = json.loads(texts[1])
    except ValueError:
        return dict(failed="its report is no JSON")
    for finding in (full.get("findings") or []) + (full.get("start_up_findings") or []):
        finding.pop("evidence", None)
    kept = {key: full.get(key) for key in ("verdicts", "findings", "start_up_findings", "steps", "watching", "health", "lines")}
    return dict(text=texts[0], **kept)


def run_all(cuptop, work, programs, args):
    """By name: ms of each run, what the recordings say, and what failed."""
    lacking = prepare(work, programs)
    rows = {name: dict(name=name, ms={}, failed=[]) for name in programs}
    for name, why in lacking.items():
        rows[name]["failed"].append(why)
    plan = [(name, cure, traced) for name, it in programs.items() if name not in lacking
            for cure in ([False] if it.get("near") else [False, True]) for traced in (False, True)]
    end, at_once = time.monotonic() + args.seconds, args.parallel != "no"
    waiting = {}

    def start(k):
        if k < len(plan) and k not in waiting:
            name, cure, traced = plan[k]
            waiting[k] = Run(cuptop, work, name, programs[name], cure, traced, args)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reads = {}
        try:
            for k, (name, cure, traced) in enumerate(plan):
                left = end - time.monotonic()
                key = ("cured" if cure else "plain") + ("_traced" if traced else "")
                if left < 12:
                    rows[name]["failed"].append(f"{key}: the time was over")
                    if k in waiting:
                        waiting.pop(k).end()
                    continue
                try:
                    start(k)
                    # No second cuptop beside one that runs: both would want the GPU's counters.
                    for ahead in (k + 1, k + 2):
                        if at_once and ahead < len(plan) and not plan[ahead][2]:
                            try:
                                start(ahead)
                            except OSError:  # it is tried again, and told, when its turn comes
                                pass
                    began = time.monotonic()
                    ms, why = waiting.pop(k).go(min(LIMIT, left))
                    if ms is not None:
                        rows[name]["ms"][key] = ms
                    if why:
                        rows[name]["failed"].append(f"{key}: {why}")
                    folder = work / (name + (".cured" if cure else ""))
                    if traced and (folder / "rec").exists():
                        job = pool.submit(read, cuptop, folder)
                        reads[name, "cured" if cure else "plain"] = job
                        if not at_once:
                            concurrent.futures.wait([job])
                    print(f"{name:10} {key:12} {why or f'{ms:.4f} ms a step'}  ({time.monotonic() - began:.1f} s)", flush=True)
                except Exception as error:  # one program that breaks must not cost the others
                    rows[name]["failed"].append(f"{key}: {type(error).__name__}: {error}")
        finally:
            for run in waiting.values():
                run.end()
        for (name, which), job in reads.items():
            try:
                rows[name][which] = job.result()
            except Exception as error:
                rows[name][which] = dict(failed=f"{type(error).__name__}: {error}")
    return rows


def read_all(cuptop, folder, programs, before):
    """As run_all, of recordings that are there already; `before` has what was measured then."""
    rows = {}
    for name in programs:
        rows[name] = dict(name=name, ms=before.get(name, {}).get("ms", {}), failed=[])
        for which, path in (("plain", folder / name), ("cured", folder / f"{name}.cured")):
            if (path / "rec").exists():
                rows[name][which] = read(cuptop, path)
    return rows


# ---- judging

def flat(text):
    return re.sub(r"\s+", " ", text).strip()


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def parts(told):
    """Headline, first finding, and all findings of a report."""
    lines = told["text"].split("\n")
    end = next((i for i, line in enumerate(lines) if i > 1 and not line.strip()), len(lines))
    verdict = (told.get("verdicts") or [{}])[0] or {}
    head = flat(" ".join(lines[2:end])) or flat(f"{verdict.get('text', '')} {verdict.get('gain') or ''}")
    at = next((i for i, line in enumerate(lines) if re.match(r"(The )?[Ff]indings", line)), None)
    section = lines[at + 1 :] if at is not None else []
    found = []
    for line in section:
        if re.match(r"\s+[!·*•] ", line):
            found.append(line)
        elif found and line.strip() and not re.match(r"\s+more: ", line):
            found[-1] += " " + line
    listed = told.get("findings") or []
    first = flat(found[0]) if found else flat(" ".join(strings(listed[0]))) if listed else ""
    return head, first, flat(" ".join(found)) or flat(" ".join(strings(listed)))


def accused(pattern, text):
    """The first match that is not denied: "not launch-bound" is a right thing to say."""
    for match in re.finditer(pattern, text, re.I) if pattern else ():
        if not re.search(r"(\bno|\bnot|n't|\bnor|\bnever|\bwithout)( an?| the)? $", text[: match.start()]):
            return match
    return None


def promised(told):
    """The share of a step that the first cure was said to save: least, likely, most; and how that was said."""
    verdict = (told.get("verdicts") or [{}])[0] or {}
    gain = verdict.get("gain") or ""
    for finding in (told.get("findings") or [])[:1]:
        made = finding.get("predicted")
        if made and made.get("measured_ns"):
            part = lambda key: 1 - (made.get(key) or made.get("likely_ns") or made["measured_ns"]) / made["measured_ns"]
            least, likely, most = part("high_ns"), part("predicted_ns"), part("low_ns")
            return (least, likely, most), f"{finding['rule']} {likely:.0%} ({least:.0%} to {most:.0%})"
    # "saves an estimated 15.8 to 20.7 ms a step"
    estimated = re.search(r"([\d.,]+) to ([\d.,]+ (?:ns|µs|us|ms|s|min))\b", gain)
    least_of = float(estimated[1].replace(",", "")) / float(estimated[2].split()[0].replace(",", "")) if estimated else 1.0
    # "up to 8.06 ms from using a CUDA graph, 9.33 ms with larger batches": a cure that does both saves at most the latter.
    both = re.search(r"up to [\d.,]+ \S+ from (.*), ([\d.,]+ \S+) with larger batches", gain)
    gain = f"up to {both[2]} from {both[1]}" if both else gain
    amounts = [float(number.replace(",", "")) * UNITS[unit] for number, unit in re.findall(r"([\d.,]*\d) (ns|µs|us|ms|s|min)\b", gain)]
    # "up to 65.4 ms a step" of uneven ones: the finding says what one takes at the mean, and of odd ones what part of the time they take.
    mean = re.search(r"at most ([\d.,]+ \S+) of ([\d.,]+ \S+) a step \(mean\)", parts(told)[1])
    odd = re.search(r"that saves at most .*\(mean\)", gain) and re.search(r": ([\d.]+) % of the time", verdict.get("text", ""))
    if odd or mean and gain.endswith("a step"):
        size = lambda text: float(text.split()[0].replace(",", "")) * UNITS[text.split()[1]]
        share = float(odd[1]) / 100 if odd else size(mean[1]) / size(mean[2])
        return (0.0, share / 2, share), f"{gain} ({share:.0%})"
    # Of what: the gain says it, or the headline before it ("of each 26.0 ms step", "of 3.21 s").
    whole = re.search(r"\b(?:of|each) ([\d.,]*\d) (ns|µs|us|ms|s|min)\b", verdict.get("text", ""))
    if amounts and (len(amounts) > 1 or whole):
        share = amounts[0] / (amounts[1] if len(amounts) > 1 else float(whole[1].replace(",", "")) * UNITS[whole[2]])
        least = 0.0 if re.search("at most|up to", gain) else share * least_of
        return (least, share * (1 + least_of) / 2, share), f"{gain} ({least:.0%} to {share:.0%})" if least_of < 1 else f"{gain} ({share:.0%})"
    # "could save at most all of it": the time that the finding is of, which is no more than the whole.
    first = parts(told)[1]
    if gain.startswith("try ") and "at most all of it" in first:
        return (0.0, 1.0, 1.0), f"{gain}: at most all of it"
    return None, gain or "nothing"


def judge(name, it, row):
    """Fills in what is right of a program."""
    wrong, marks = list(row["failed"]), {}
    ms, near = row["ms"], it.get("near")
    told = row.get("plain")
    failed = any(why.startswith("plain_traced: ") for why in wrong)
    if failed or not told or told.get("failed"):
        return dict(row, head="", wrong=wrong + ([told["failed"]] if told and told.get("failed") else []), marks={}, ran=False)
    head, first, all_found = parts(told)
    said, first_said = f"{head} {all_found}", f"{head} {first}"
    find = lambda pattern, text: re.search(pattern, text, re.I) if pattern else None
    bad = accused(it["wrong"], said)
    marks["say"] = bool(find(it["say"], first_said)) and not bad
    if not find(it["say"], first_said):
        wrong.append(f"{'says it late' if find(it['say'], said) else 'does not say'} /{it['say']}/")
    if bad:
        wrong.append(f"says {bad[0]!r}")
    if it.get("tell") and not find(it["tell"], flat(told["text"])):
        marks["say"] = False
        wrong.append(f"nowhere /{it['tell']}/")
    places = "|".join([re.escape(place) + r"\b" for place in it.get("at", []) + it.get("also", [])] + ([it["place"]] if it.get("place") else []))
    if places and not near:
        marks["place"] = bool(find(places, said))
        if not marks["place"]:
            wrong.append(f"no place {', '.join(it['at'])}" + (" (it stands in a table)" if find(places, flat(told["text"])) else ""))
    if it["change"] and not near:
        marks["change"] = bool(find(it["change"], said))
        if not marks["change"]:
            wrong.append(f"no change /{it['change']}/")
    plain, cured = ms.get("plain"), ms.get("cured")
    saved = 1 - cured / plain if plain and cured else None
    share, how = promised(told)
    if not near and it.get("promise") == "none":
        marks["promise"] = share is None or share[1] < 0.1
        if not marks["promise"]:
            wrong.append(f"promises {how}, and there is nothing to promise")
    elif not near and saved is not None:
        if share is None:
            marks["promise"] = False
            wrong.append(f"promises {how}; the cure saves {saved:.0%}")
        else:
            low, likely, high = share
            close = abs((1 - saved) / max(1e-9, 1 - likely) - 1) <= 0.1
            marks["promise"] = close or low - 0.05 <= saved <= high + 0.05
            if not marks["promise"]:
                wrong.append(f"promises {how}; the cure saves {saved:.0%}")
    twin = row.get("cured") if not any(why.startswith("cured_traced: ") for why in wrong) else None
    if twin and not twin.get("failed"):
        cured_head, _, cured_found = parts(twin)
        bad = accused(it.get("cured_wrong", ""), f"{cured_head} {cured_found}")
        marks["twin"] = not bad
        row["cured_head"] = cured_head
        row["cured_rules"] = [finding["rule"] for finding in twin.get("findings") or [] if finding.get("severity") == "warning"]
        if bad:
            wrong.append(f"of the cured program it says {bad[0]!r}")
    elif twin:
        wrong.append(f"cured: {twin['failed']}")
    doubts = []
    if saved is not None and it.get("saves"):
        low, high = it["saves"]
        if not low <= saved <= high:
            doubts.append(f"the cure saves {saved:.0%}, {low:.0%} to {high:.0%} was thought")
    return dict(row, head=head, first=first, wrong=wrong, doubts=doubts, marks=marks, saved=saved, promise=how, ran=True)


def milliseconds(value):
    return "-" if value is None else f"{value:.4g}"


def show(name, it, row):
    marks, ms = row["marks"], row["ms"]
    right = row["ran"] and all(marks.values()) and bool(marks)
    mark = "right" if right else "WRONG" if row["ran"] else "-----"
    kind = f"near {it['kind']}" if it.get("near") else f"kind {it['kind']}"
    saved = row.get("saved")
    pair = lambda key: milliseconds(ms.get(f"plain{key}")) + ("" if it.get("near") else f" → {milliseconds(ms.get(f'cured{key}'))}")
    judged = " ".join(f"{key}:{'yes' if value else 'NO'}" for key, value in marks.items())
    lines = [f"{mark}  {name:10} {kind:8} {pair('')} ms{'' if saved is None else f' ({-saved:+.0%})'}, recorded {pair('_traced')}; {judged}"]
    if row["head"]:
        lines.append(f"         said: {row['head'][:300]}")
    if row["ran"] and not it.get("near"):
        lines.append(f"         promised: {row['promise']}")
    if not right:
        lines.append(f"         expert: {it['expert']}")
        if row.get("first"):
            lines.append(f"         first finding: {row['first'][:300]}")
    lines += [f"         ! {wrong}" for wrong in row["wrong"]]
    lines += [f"         ? {doubt}" for doubt in row.get("doubts", [])]
    if row.get("cured_head"):
        lines.append(f"         cured twin: {row['cured_head'][:200]} [{' '.join(row['cured_rules'])}]")
    return lines, right


def conclude(rows):
    every, lines, right = truths(), [], {}
    judged = {}
    for name, row in rows.items():
        if name not in every:
            continue
        try:
            judged[name] = judge(name, every[name], row)
            more, right[name] = show(name, every[name], judged[name])
        except Exception as error:
            more, right[name] = [f"-----  {name}: its report is not as expected: {type(error).__name__}: {error}"], False
            judged.pop(name, None)
        lines += more
    lines.append("")
    lines.append(f"{'program':12}{'kind':13}right  say  place change promise twin       ms → cured   saved  promised")
    for name, row in judged.items():
        sign = lambda key: {True: "+", False: "-", None: "."}[row["marks"].get(key)]
        it, ms = every[name], row["ms"]
        answer = "yes" if right[name] else "no" if row["ran"] else "broken"
        saved = "" if row.get("saved") is None else f"{row['saved']:.0%}"
        begin = f"{name:11}{'~' if it.get('near') else ' '}{it['kind'][:12]:13}{answer:7}"
        lines.append(f"{begin}{sign('say'):5}{sign('place'):6}{sign('change'):7}{sign('promise'):8}{sign('twin'):5}"
                     f"{milliseconds(ms.get('plain')):>8} → {milliseconds(ms.get('cured')):8}{saved:>5}  {str(row.get('promise', ''))[:70]}")
    for title, near in (("programs", False), ("near misses", True)):
        some = [row for name, row in judged.items() if row["ran"] and bool(every[name].get("near")) == near]
        if some:
            counts = ", ".join(f"{key} {sum(row['marks'].get(key) is True for row in some)} of {sum(key in row['marks'] for row in some)}"
                               for key in ("say", "place", "change", "promise", "twin") if any(key in row["marks"] for row in some))
            lines.append(f"{sum(right[row['name']] for row in some)} of {len(some)} {title} right: {counts}")
    absent = [name for name in rows if name not in judged or not judged[name]["ran"]]
    if absent:
        lines.append(f"did not run: {', '.join(absent)}")
    return lines, right


def pack(work, out, suffix, mib):
    """Packs recordings, smallest first, into at most four files."""
    bound, number, size, tar = mib << 20, 0, 0, None
    sized = []
    for rec in sorted(work.glob("*/rec")):
        file = rec.parent / "rec.tar.gz"
        with tarfile.open(file, "w:gz", compresslevel=6) as one:
            one.add(rec, arcname=f"{rec.parent.name}/rec")
        sized.append((file.stat().st_size, rec))
    for bytes_, rec in sorted(sized, key=lambda pair: pair[0]):
        if tar is None or size + bytes_ > bound:
            if bytes_ > bound or number == 4:
                print(f"left out of the packs: {rec.parent.name}, {bytes_ / (1 << 20):.1f} MiB")
                continue
            if tar:
                tar.close()
            tar, size, number = tarfile.open(out / f"recordings{suffix}.{number}.tar.gz", "w:gz", compresslevel=6), 0, number + 1
        tar.add(rec, arcname=f"{rec.parent.name}/rec")
        size += bytes_
    if tar:
        tar.close()


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--slice")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--steady", type=float, default=3.0)
    parser.add_argument("--parallel", choices=["yes", "no"], default="yes")
    parser.add_argument("--pack", type=int)
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--again", nargs="+", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.check:
        return check()
    if args.list:
        for name, it in chosen(args).items():
            print(f"{name:11}{'near ' if it.get('near') else 'kind '}{it['kind']!s:4} {it['expert']}")
        return 0
    if args.again:
        rows = {}
        for file in args.again:
            for row in json.loads(file.read_text()):
                rows[row["name"]] = row
        lines, right = conclude(rows)
        print("\n".join(lines))
        return 0 if all(right.values()) else 1
    if not args.cuptop or not args.out:
        parser.error("say CUPTOP and OUT")
    cuptop = shutil.which(args.cuptop)
    if not cuptop:
        parser.error(f"{args.cuptop} is no program")
    cuptop, out = pathlib.Path(cuptop).resolve(), args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    programs = chosen(args)
    suffix = "-" + args.slice.replace("/", "of") if args.slice else ""
    work = pathlib.Path(tempfile.mkdtemp(prefix="strangers-"))
    try:
        if args.source:
            before = {}
            for file in args.source.glob("judged*.json"):
                before.update({row["name"]: row for row in json.loads(file.read_text())})
            rows = read_all(cuptop, args.source.resolve(), programs, before)
        else:
            rows = run_all(cuptop, work, programs, args)
        (out / f"judged{suffix}.json").write_text(json.dumps(list(rows.values())))
        with open(out / f"reports{suffix}.txt", "w") as file:
            for name, row in rows.items():
                for which in ("plain", "cured"):
                    if row.get(which):
                        file.write(f"==== {name} {which}: {row['ms']}\n{row[which].get('text') or row[which].get('failed')}\n")
        lines, right = conclude(rows)
        (out / f"judged{suffix}.txt").write_text("\n".join(lines) + "\n")
        if args.pack and not args.source:
            pack(work, out, suffix, args.pack)
        print("\n".join(lines))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if all(right.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
