#!/usr/bin/env python3
"""Signals at random moments, without a GPU: `trace`, `run`, `open` and `attach` on the fake CUPTI, each on a terminal of its own.

usage: signals.py CUPTOP [NUMBER] [SEED] [FAKES]

A signal is TERM, INT, HUP, USR1, a real-time one, STOP with CONT, or WINCH. After the first ones cuptop must end within 5 s; after the
others it must live, and end by TERM. Then the terminal must be as it was, no process may be left, a program that ends with a code of its own
must give cuptop that code, and a program that was attached to must live on. Prints what was sent; fails when anything else happens.
PATIENCE in the environment stands for the 5 s.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = float(os.environ.get("PATIENCE", 5))
ENDING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGRTMIN, signal.SIGRTMIN + 16, signal.SIGRTMAX]
# Those that `trace` passes on as they are.
TOLD = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
HARMLESS = [signal.SIGSTOP, signal.SIGWINCH]
MOMENTS = [0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, None]


def make_fakes(work):
    made = Path(work) / "fakes"
    made.mkdir()
    for source, output, options in [
        ("libcuda.c", "libcuda.so.580.1.1", ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]),
        ("libcupti.c", "libcupti.so.13", ["-shared", "-fPIC", "-Wl,-soname,libcupti.so.13"]),
        ("program.c", "program", []),
    ]:
        line = ["cc", "-O1", "-pthread", *options, "-o", made / output, HERE / "fake" / source, "-ldl"]
        subprocess.run(line, check=True)
    (made / "libcuda.so.1").symlink_to("libcuda.so.580.1.1")
    return made


def of_case(mark):
    """The processes that live and have this mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


class Case:
    def __init__(self, cuptop, fakes, work, number, random):
        self.cuptop, self.fakes, self.folder, self.random = cuptop, fakes, Path(work) / str(number), random
        self.folder.mkdir(mode=0o700)
        self.mark = f"SIGNALS_CASE={number}-{os.getpid()}"
        self.command = random.choice(["trace", "headless", "run", "open", "attach"])
        self.obeys = random.random() < 0.5
        self.signal = random.choice(ENDING + HARMLESS)
        moment = random.choice(MOMENTS)
        self.moment = random.random() * 1.5 if moment is None else moment
        self.target, self.output, self.wrong = None, b"", []

    def __str__(self):
        return f"{self.command} {signal.strsignal(self.signal)} after {self.moment * 1e3:.0f} ms"

    def line(self):
        up = self.folder / "up"
        program = [str(self.fakes / "program"), "slowly", "30000"]
        if not self.obeys:
            program = ["sh", "-c", f"trap 'exit 7' TERM INT HUP; : > {up}; while :; do sleep 0.02; done"]
        quick = ["--hardware", "off", "--python", "off"]
        if self.command == "attach":
            return ["attach", str(self.target.pid), "--headless", *quick]
        return {
            "trace": ["trace", *quick, "--", *program],
            "headless": ["trace", "--headless", *quick, "--", *program],
            "run": ["run", "pipeline", "--backend", "sim"],
            "open": ["open", str(HERE / "data" / "small.json")],
        }[self.command]

    def environment(self):
        name, _, value = self.mark.partition("=")
        fakes = str(self.fakes)
        here = {"LD_LIBRARY_PATH": fakes, "CUPTOP_CUPTI": f"{fakes}/libcupti.so.13", "XDG_RUNTIME_DIR": str(self.folder)}
        return {**os.environ, **here, "TERM": "xterm-256color", name: value}

    def read(self, master):
        try:
            while piece := os.read(master, 65536):
                self.output += piece
        except OSError:
            pass

    def check(self, is_so, what):
        if not is_so:
            self.wrong.append(what)

    def begin_target(self):
        if self.command != "attach":
            return
        environment = {key: value for key, value in self.environment().items() if not key.startswith("SIGNALS_")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.target = subprocess.Popen([self.fakes / "program", "late"], env=environment, **pipes)
        self.target.stdout.readline()

    def end_target(self):
        if self.target:
            self.check(self.target.poll() is None, "the program that was attached to has ended")
            self.target.communicate()
            self.check(self.target.returncode == 0, f"the program that was attached to ends with {self.target.returncode}")

    def run(self):
        self.begin_target()
        master, slave = os.openpty()
        before = termios.tcgetattr(slave)
        line = ["setsid", "-c", self.cuptop, *self.line()]
        process = subprocess.Popen(line, env=self.environment(), stdin=slave, stdout=slave, stderr=slave)
        reader = threading.Thread(target=self.read, args=[master])
        reader.start()
        time.sleep(self.moment)
        self.took = self.end(process)
        left = self.left()
        self.check(not left, f"{len(left)} processes are left")
        self.check(termios.tcgetattr(slave) == before, "the terminal is not as it was")
        os.close(slave)
        reader.join(PATIENCE)
        os.close(master)
        self.check(b"panicked" not in self.output, "it panicked")
        for mode, end in re.findall(rb"\x1b\[\?(\d+)([hl])", self.output)[::-1]:
            normal = b"h" if mode in (b"25", b"7") else b"l"
            last = re.findall(rb"\x1b\[\?" + mode + rb"([hl])", self.output)[-1]
            self.check(last == normal or mode == b"2026", f"mode {mode.decode()} of the terminal stays")
        self.end_target()
        return self

    def end(self, process):
        """Sends the signal, and returns how long it took to end."""
        sent = self.signal
        is_up = (self.folder / "up").exists()
        if sent in HARMLESS:
            process.send_signal(sent)
            time.sleep(0.1)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
            self.check(process.poll() is None, f"it ended with {process.returncode}")
            sent, is_up = signal.SIGTERM, (self.folder / "up").exists()
        begun = time.monotonic()
        process.send_signal(sent)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"it has not ended within {PATIENCE:.0f} s")
            process.kill()
            code = process.wait()
        codes = [128 + sent, -sent]
        if self.command in ("trace", "headless") and not self.obeys:
            codes = [7] if is_up and sent in TOLD else [7, *codes]
        if self.command == "headless" and sent not in TOLD:
            # A real-time one is passed on as TERM.
            codes.append(128 + signal.SIGTERM)
        self.check(code in codes, f"it ended with {code}, not {codes}")
        return time.monotonic() - begun

    def left(self):
        begun = time.monotonic()
        while (left := of_case(self.mark)) and time.monotonic() - begun < PATIENCE:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def main():
    cuptop = os.path.realpath(sys.argv[1])
    number, seed = (int(text) for text in (sys.argv[2:4] + ["500", "1"][len(sys.argv[2:4]):]))
    with tempfile.TemporaryDirectory() as work:
        fakes = Path(sys.argv[4]) if len(sys.argv) > 4 else make_fakes(work)
        dice = random.Random(seed)
        cases = [Case(cuptop, fakes, work, at, dice) for at in range(number)]
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(Case.run, cases))
    for case in done:
        for wrong in case.wrong:
            print(f"FAIL {case}: {wrong}")
    kinds = {name: sum(case.command == name for case in done) for name in ("trace", "headless", "run", "open", "attach")}
    failed = sum(bool(case.wrong) for case in done)
    longest = max(case.took for case in done)
    print(f"{number} signals, {kinds}: {failed} wrong, the longest end {longest:.1f} s")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
