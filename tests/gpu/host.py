#!/usr/bin/env python3
"""What cuptop sees of the host on a real GPU: a process that runs already, workers that are spawned and killed, torch.compile and Triton.

usage: host.py CUPTOP [--out DIR]        (needs python3 with torch, and a GPU; pictures and reports go to DIR, default $OUT or gpu-host)
       host.py --program NAME            (one of the programs by itself: what is traced)

Started as root, the programs and cuptop run as uid 65534; attaching is tried as both. Takes about three minutes. The last lines are a table;
the exit status is the number of checks that failed.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
NOBODY = 65534
# Kernels that a program launches on purpose.
EACH = 500
TRITON = 300
FAILED, TABLE = [], []


# --- the programs ---


def model_of(torch):
    return torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()


def waits_for_data(torch, seconds):
    """A line to be seen: it is here that the GPU waits."""
    time.sleep(0.003)
    return torch.randn(512, 1024)


def loop(seconds=45):
    import torch

    model = model_of(torch)
    print("READY", flush=True)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        batch = waits_for_data(torch, 0.003).cuda()
        for _ in range(20):
            batch = model(batch)
        torch.cuda.synchronize()


class Items:
    """A data set whose items take a while."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import torch

        time.sleep(0.001)
        return torch.full((256,), float(index))


def workers():
    import torch

    for method in ["spawn", "fork"]:
        data = torch.utils.data.DataLoader(Items(), batch_size=16, num_workers=2, multiprocessing_context=method)
        batches, steps = iter(data), 0
        victim = batches._workers[0].pid
        try:
            for batch in batches:
                batch.cuda().add_(1)
                torch.cuda.synchronize()
                steps += 1
                if steps == 60:
                    os.kill(victim, signal.SIGKILL)
                if steps == 400:
                    break
        except RuntimeError as error:
            print(f"KILLED {method} {steps} {str(error).splitlines()[0][:80]}", flush=True)
        del batches
    print("OVER", flush=True)


def child(rank):
    import torch

    x = torch.zeros(1024, device="cuda")
    for _ in range(EACH):
        x.add_(1)
    torch.cuda.synchronize()
    # What has ended this long ago must not be lost.
    time.sleep(1)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def spawned():
    import torch.multiprocessing

    try:
        torch.multiprocessing.spawn(child, nprocs=2)
    except Exception as error:
        print("KILLED", type(error).__name__, flush=True)
    print("OVER", flush=True)


TRITON_PROGRAM = f"""
import torch, triton
import triton.language as tl

@triton.jit
def adds_one(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

x = torch.zeros(4096, device="cuda")
for _ in range({TRITON}):
    adds_one[(4,)](x, 4096, BLOCK=1024)
torch.cuda.synchronize()
assert x[7].item() == {TRITON}

def fused(a, b):
    return (torch.sin(a) * b + torch.relu(a - b)).sum(-1)

a, b = torch.randn(512, 1024, device="cuda"), torch.randn(512, 1024, device="cuda")
compiled = torch.compile(fused)
for _ in range(50):
    c = compiled(a, b)
torch.cuda.synchronize()
assert torch.allclose(c, fused(a, b), rtol=1e-3, atol=1e-2)
print("OVER", flush=True)
"""
PROGRAMS = {"loop": loop, "workers": workers, "spawned": spawned}


# --- around them ---


def check(what, ok, detail=""):
    print(f"{'pass' if ok else 'FAIL'}  {what}{'  ' + str(detail) if detail != '' else ''}", flush=True)
    if not ok:
        FAILED.append(what)


class Place:
    """Where everything lies that a user without rights can read and write, and how he starts something."""

    def __init__(self, cuptop):
        self.folder = Path(tempfile.mkdtemp(prefix="cuptop-host-", dir="/tmp"))
        os.chmod(self.folder, 0o777)
        self.cuptop = shutil.copy(cuptop, self.folder / "cuptop")
        self.script = shutil.copy(HERE, self.folder / HERE.name)
        self.triton = self.folder / "compiled.py"
        self.triton.write_text(TRITON_PROGRAM)
        for path in [self.cuptop, self.script, self.triton]:
            os.chmod(path, 0o755)
        home = str(self.folder)
        self.environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "TRITON_CACHE_DIR": f"{home}/triton"}
        self.environment |= {"TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor", "USER": "nobody", "PYTHONDONTWRITEBYTECODE": "1"}
        os.mkdir(f"{home}/cache")
        os.chmod(f"{home}/cache", 0o777)
        self.has_nobody = os.geteuid() == 0
        try:
            self.has_nobody = self.has_nobody and self.run(sys.executable, "-c", "import torch").returncode == 0
        except PermissionError:
            self.has_nobody = False
        if os.geteuid() == 0 and not self.has_nobody:
            print(f"left out: uid {NOBODY} cannot use {sys.executable}; everything runs as root")

    def user(self, is_nobody=True):
        if not is_nobody or not self.has_nobody:
            return {}
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def run(self, *line, is_nobody=True, timeout=150):
        return subprocess.run([str(it) for it in line], capture_output=True, text=True, timeout=timeout, env=self.environment, cwd=self.folder, **self.user(is_nobody))

    def trace(self, name, command):
        """A traced run: report, all that was printed, where the recording is."""
        save = self.folder / f"{name}.cuptop"
        done = self.run(self.cuptop, "trace", "--headless", "--json", "--save", save, "--", *command)
        at = done.stdout.find("{\n")
        report = json.loads(done.stdout[at:]) if at >= 0 else {}
        check(f"{name}: traced", bool(report) and done.returncode == 0 and "OVER" in done.stdout, "" if report else done.stdout[-600:] + done.stderr[-1200:])
        health = report.get("health", {})
        check(f"{name}: nothing lost", not health.get("lost") and not health.get("dropped"), health)
        return report, done.stdout[: max(at, 0)] + done.stderr, save


def kernels(report, part):
    """How many kernels have this in their name."""
    return sum(it["count"] for it in report.get("kernels", []) if part in json.dumps(it).lower())


def attaches(place, out):
    program = subprocess.Popen([sys.executable, str(place.script), "--program", "loop"], stdout=subprocess.PIPE, text=True, env=place.environment, cwd=place.folder, **place.user())
    program.stdout.readline()
    for who, is_nobody in [("root", False), ("uid 65534", True)] if place.has_nobody else [("this user", False)]:
        save = place.folder / f"attached-{who.split()[0]}.cuptop"
        done = place.run(place.cuptop, "attach", program.pid, "--stacks-only", "--headless", "--duration", "6s", "--save", save, is_nobody=is_nobody)
        if "may not be read" in done.stderr:
            check(f"attach as {who}: refused with what helps", "ptrace" in done.stderr.lower(), done.stderr.strip()[-300:])
            TABLE.append((f"attach as {who}", "not permitted here"))
            continue
        check(f"attach as {who}: it looks", done.returncode == 0, done.stderr.strip()[-400:])
        found = place.run(place.cuptop, "report", "--json", save, is_nobody=is_nobody)
        report = json.loads(found.stdout) if found.stdout.startswith("{") else {}
        looks = sum(it["looks"] for it in report.get("sampling", []))
        check(f"attach as {who}: Python stacks", looks > 100, f"{looks} looks")
        tables = save.with_suffix(".sqlite")
        place.run(place.cuptop, "export", "-o", tables, save, is_nobody=is_nobody)
        check(f"attach as {who}: the line that waits is seen", b"waits_for_data" in tables.read_bytes())
        gpus = report.get("hardware", {}).get("devices", [])
        metrics = {it["metric"]: it["mean"] for gpu in gpus for it in gpu["metrics"]}
        check(f"attach as {who}: hardware rows of one GPU", len(gpus) == 1, report.get("hardware", {}).get("notes"))
        check(f"attach as {who}: power, clock and memory are read", all((metrics.get(it) or 0) > 0 for it in ["power", "clock", "memory"]), {k: v for k, v in metrics.items() if v})
        TABLE.append((f"attach as {who}", f"{looks} looks, SM {100 * (metrics.get('sm') or 0):.0f} %, {metrics.get('power') or 0:.0f} W"))
        pictures(place, save, out, f"attach-{'nobody' if is_nobody else 'self'}", is_nobody)
    program.kill()
    program.wait()


def pictures(place, save, out, name, is_nobody=True, *options):
    for ending in ["svg", "png", "txt"]:
        made = place.folder / f"{name}.{ending}"
        done = place.run(place.cuptop, "open", save, "--screenshot", made, "--size", "150x44", *options, is_nobody=is_nobody)
        if done.returncode or not made.exists():
            return check(f"{name}: a picture is made", False, done.stderr[-300:])
        shutil.copy(made, out / made.name)
    text = (out / f"{name}.txt").read_text()
    rows = {line[:10].split()[0] for line in text.splitlines() if line[:10].split()}
    check(f"{name}: the picture has the lanes of Python and of the hardware", "SM" in rows and "clock" in rows and any(it.startswith("py") for it in rows), sorted(rows))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cuptop", nargs="?")
    parser.add_argument("--out", default=os.environ.get("OUT", "gpu-host"))
    parser.add_argument("--program", choices=PROGRAMS)
    parser.add_argument("--seconds", default=45)
    options = parser.parse_args()
    if options.program == "loop":
        return loop(options.seconds)
    if options.program:
        return PROGRAMS[options.program]()
    if not options.cuptop:
        parser.error("say where cuptop is")
    out = Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    place = Place(Path(options.cuptop).resolve())
    attaches(place, out)

    save = place.folder / "loop.cuptop"
    done = place.run(place.cuptop, "trace", "--headless", "--json", "--save", save, "--", sys.executable, place.script, "--program", "loop", "--seconds", "4")
    check("loop: traced", done.returncode == 0, "" if done.returncode == 0 else done.stderr[-800:])
    if done.returncode == 0:
        report = json.loads(done.stdout[done.stdout.find("{\n"):])
        (out / "loop.json").write_text(json.dumps(report, indent=1))
        lines = [it["place"] for device in report.get("lines", []) for it in device["lines"]][:3]
        check("loop: the line that the GPU waits for is first", bool(lines) and lines[0].startswith(HERE.name), lines)
        pictures(place, save, out, "host")
        pictures(place, save, out, "host-near", True, "--zoom", "2000 ms .. 2040 ms")

    report, text, save = place.trace("workers", [sys.executable, place.script, "--program", "workers"])
    killed = [line.split()[1] for line in text.splitlines() if line.startswith("KILLED")]
    check("workers: PyTorch noticed both kills", killed == ["spawn", "fork"], killed)
    seen = report.get("workers", [])
    check("workers: spawned and forked ones were seen at work", len(seen) >= 3, f"{len(seen)} of 4")
    torn = sum(it["torn"] for it in report.get("sampling", [])) / max(1, sum(it["looks"] + it["torn"] for it in report.get("sampling", [])))
    check("workers: killed processes are no torn looks (under 15 %)", torn < 0.15, f"{torn:.1%}")
    TABLE.append(("workers, spawned, forked, killed", f"{len(seen)} of 4 seen, {torn:.1%} of looks torn"))

    report, text, save = place.trace("spawned", [sys.executable, place.script, "--program", "spawned"])
    count = kernels(report, "add")
    check("spawned: every kernel of both processes is recorded, one of them killed", count == 2 * EACH, f"{count} of {2 * EACH}")
    TABLE.append(("two spawned processes, one killed", f"{count} of {2 * EACH} kernels"))

    bare = place.run(sys.executable, place.triton)
    if "OVER" in bare.stdout:
        report, text, save = place.trace("compiled", [sys.executable, place.triton])
        own, inductors = kernels(report, "adds_one"), kernels(report, "triton_")
        check("compiled: every launch of a Triton kernel is recorded", own == TRITON, f"{own} of {TRITON}")
        check("compiled: kernels of torch.compile are recorded", inductors >= 50, f"{inductors} of at least 50")
        TABLE.append(("Triton and torch.compile", f"{own} of {TRITON}, {inductors} of at least 50 kernels"))
    else:
        TABLE.append(("Triton and torch.compile", "left out: it does not run bare"))
        print("left out: torch.compile does not run here without cuptop either:", bare.stderr.strip()[-300:])
    shutil.rmtree(place.folder, ignore_errors=True)
    print()
    for what, found in TABLE:
        print(f"{what:34} {found}")
    print(f"{len(FAILED)} checks failed" + (": " + "; ".join(FAILED) if FAILED else ""))
    return min(len(FAILED), 100)


if __name__ == "__main__":
    sys.exit(main())
