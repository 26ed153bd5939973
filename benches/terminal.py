#!/usr/bin/env python3
"""Figures of the screen in a pseudo-terminal: how soon a key shows, and what is sent to the terminal.

usage: terminal.py [--cuptop FILE] [--operations N] [--trace FILE] [--keys N] [--size COLSxROWS]

  --cuptop FILE   the program (target/release/cuptop)
  --operations N  kernels in the trace that is made (1000000: 1.2 GB in a temporary folder)
  --trace FILE    the trace that is looked through; made there when it is not yet (and kept)
  --keys N        keys that are pressed on the loaded timeline (400)

Needs python3 alone. Figures are of this machine and of what else it does meanwhile: the load stands with them. A frame is what lies
between two begins of a synchronized update, which cuptop sends around each; a key shows when the first byte after it
arrives. Keys come 60 ms apart, further than frames may be. On Linux the time that the screen's own thread was at work for a key stands
beside: other programs make that no longer.
"""
import argparse
import fcntl
import os
import pathlib
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
BEGIN = b"\x1b[?2026h"
# Keys of the timeline that change what is on it, and those that are answered whatever is on screen.
KEYS = "+lg-hn+jL-k0]]["
ANYTIME = ["?", "\x1b"]


class Screen:
    """The program in a terminal of its own."""

    def __init__(self, command, columns, rows):
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR")}
            environment.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], command, environment)

    def read(self, seconds):
        """What comes within a time, and when its first byte came; stops early when there is something."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return b"", None
        at = time.monotonic()
        try:
            return os.read(self.fd, 1 << 20), at
        except OSError:
            return b"", None

    def drain(self, seconds):
        """All that comes until nothing has come for a while."""
        data = b""
        while True:
            more, at = self.read(seconds)
            if at is None or not more:
                return data
            data += more

    def press(self, key, patience=5.0):
        """Presses a key: seconds until the first byte, and the bytes until 50 ms of silence."""
        sent = time.monotonic()
        os.write(self.fd, key.encode())
        data, at = self.read(patience)
        if at is None:
            return None, b""
        return at - sent, data + self.drain(0.05)

    def first_frame(self, patience):
        """Seconds from the start until the first frame begins to arrive."""
        data, until = b"", time.monotonic() + patience
        while time.monotonic() < until:
            more, at = self.read(0.1)
            data += more
            if BEGIN in data:
                return at - self.began
        return float("inf")

    def worked(self):
        """Seconds that the thread of the screen has been at work; 0 where nobody tells."""
        try:
            with open(f"/proc/{self.pid}/task/{self.pid}/schedstat") as stat:
                return int(stat.read().split()[0]) / 1e9
        except OSError:
            return 0.0

    def close(self):
        try:
            os.write(self.fd, b"q")
            self.drain(0.2)
            os.close(self.fd)
        except OSError:
            pass
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def ms(seconds):
    return f"{1e3 * seconds:.1f} ms"


def row(name, value, reach=""):
    print(f"| {name} | {value} | {reach} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuptop", default="target/release/cuptop")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--trace")
    parser.add_argument("--keys", type=int, default=400)
    parser.add_argument("--size", default="120x40")
    args = parser.parse_args()
    columns, rows = (int(n) for n in args.size.split("x"))
    cuptop = os.path.abspath(args.cuptop)
    missed = []

    def held(name, seconds, bound):
        if seconds > bound:
            missed.append(name)

    with tempfile.TemporaryDirectory() as folder:
        trace = args.trace or os.path.join(folder, "large.json")
        if not os.path.exists(trace):
            subprocess.run([sys.executable, HERE / "make_kineto.py", str(args.operations), trace], check=True)
            # What was just written is on its way to the disk for a while, and may hold up whoever asks for memory.
            os.sync()
        print(f"{columns}x{rows}, {args.operations:,} kernels, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
        print("| what | measured | to reach |\n|---|---|---|")

        firsts = []
        for _ in range(5):
            screen = Screen([cuptop, "run", "pipeline", "--backend", "sim"], columns, rows)
            firsts.append(screen.first_frame(5.0))
            screen.close()
        first = statistics.median(firsts)
        row("first frame of `run pipeline` (simulator), median of 5", ms(first), "50 ms")
        held("first frame", first, 0.05)

        screen = Screen([cuptop, "open", trace], columns, rows)
        row("first frame of `open`", ms(screen.first_frame(10.0)), "50 ms")
        screen.drain(0.05)
        # While it loads and is looked through: the help opens and closes. Each key must show.
        loading, silent, done = [], 0, None
        while done is None and time.monotonic() - screen.began < 300:
            for key in ANYTIME:
                taken, _ = screen.press(key)
                if taken is None:
                    silent += 1
                else:
                    loading.append(taken)
            # The whole screen anew: what changed alone may leave letters of the word out.
            if b"DONE" in screen.press("\x0c")[1]:
                done = time.monotonic() - screen.began
        row("keys while it loads: pressed", len(loading) + silent)
        row("keys while it loads: median, greatest", f"{ms(statistics.median(loading))}, {ms(max(loading))}")
        row("keys while it loads: not answered in 5 s", silent, "0")
        if silent:
            missed.append("keys while loading")
        row("loaded after", f"{done:.1f} s" if done else "not in 300 s")

        # Right behind that the analysis runs.
        analysis = [taken for key in "+l-h" * 10 for taken in [screen.press(key)[0]] if taken is not None]
        row("first 40 keys behind that: median, greatest", f"{ms(statistics.median(analysis))}, {ms(max(analysis))}")
        screen.drain(2.0)
        times, sizes, works, of_key = [], [], [], {}
        for i in range(args.keys):
            key, before = KEYS[i % len(KEYS)], screen.worked()
            taken, data = screen.press(key, 0.3)
            if taken is not None:
                times.append(taken)
                sizes.append(len(data))
                works.append(screen.worked() - before)
                of_key.setdefault(key, []).append((taken, works[-1]))
        row(f"key to frame, {len(times)} keys: median", ms(statistics.median(times)))
        p99 = percentile(times, 0.99)
        row("key to frame: p99", ms(p99), "10 ms")
        held("key to frame", p99, 0.01)
        row("work of the screen's thread for a key: median, p99", f"{ms(statistics.median(works))}, {ms(percentile(works, 0.99))}")
        greatest = {key: [max(of) for of in zip(*both)] for key, both in of_key.items()}
        slowest = sorted(greatest.items(), key=lambda of: -of[1][1])[:6]
        words = ", ".join(f"`{key}` {ms(taken)} ({ms(worked)})" for key, (taken, worked) in slowest)
        row("keys with most work: greatest time (work)", words)
        row("bytes of a key's frames: median", f"{statistics.median(sizes):.0f}")
        screen.drain(2.0)
        idle = screen.drain(3.0)
        row("bytes in 3 s in which nothing changes", len(idle), "0")
        if idle:
            missed.append("bytes when nothing changes")
        screen.close()

        # Followed: a replay of a run, and frames by their begins.
        screen = Screen([cuptop, "run", "pipeline", "--backend", "sim", "--replay", "0.003x"], columns, rows)
        data, until = b"", time.monotonic() + 15
        while time.monotonic() < until:
            data += screen.read(0.1)[0]
        screen.close()
        frames = [len(BEGIN) + len(part) for part in data.split(BEGIN)[1:]]
        if frames:
            median = statistics.median(frames)
            row(f"bytes a frame while following, {len(frames)} frames: median", f"{median:.0f}", "3072")
            row("bytes a frame while following: p99, greatest", f"{percentile(frames, 0.99)}, {max(frames)}")
            held("bytes a frame", median, 3072)
    print(f"\nload {os.getloadavg()[0]:.1f}; missed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
