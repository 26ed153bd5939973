#!/usr/bin/env python3
"""How long after its end an operation is on the screen.

usage: latency.py CUPTOP [--out DIR] [--flush MS]      (needs a GPU)

Runs latency.toml and queue.toml with the screen on a terminal of its own (120x40), with a log of when each frame was written and
how many operations it held (CUPTOP_FRAME_LOG), and compares with the ends of the operations in the recording. All kernels
are on one stream, so the k-th operation is visible from the first frame that holds k. Prints the median, p99 and the
greatest of frame time minus end time. CUPTI keeps a buffer while one of its kernels runs: in queue.toml one always does.
"""
import argparse
import bisect
import csv
import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def on_a_terminal(command, env, seconds):
    """Runs a command on a terminal that reads everything at once; types q at the end. Returns the bytes it wrote. A key that does
    nothing is typed each second: two seconds after the last one frames come seldomer."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    until, written, asked = time.monotonic() + seconds, 0, False
    typed = time.monotonic()
    while True:
        if not asked and time.monotonic() > typed + 1:
            os.write(fd, b"Z")
            typed += 1
        if not asked and time.monotonic() > until:
            os.write(fd, b"q")
            asked = True
        if asked and time.monotonic() > until + 5:
            os.kill(pid, 9)
        ready, _, _ = select.select([fd], [], [], 0.1)
        if ready:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            written += len(data)
    os.waitpid(pid, 0)
    return written


# Each scenario, how many kernels it has, and how late, in ms, 99 of 100 of them may be.
SCENARIOS = [("latency", 2000, 60), ("queue", 400, 600)]


def measure(args, name, count, most):
    """Runs one, and prints how late it was. Whether that is soon enough."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    recording, log = out / f"{name}-recording", out / f"{name}-frames.txt"
    shutil.rmtree(recording, ignore_errors=True)
    env = {**os.environ, "TERM": "xterm-256color", "CUPTOP_FRAME_LOG": str(log)}
    command = [args.cuptop, "run", str(HERE / f"{name}.toml"), "--backend", args.backend, "--save", str(recording), "--flush", args.flush]
    written = on_a_terminal(command, env, 8)
    done = subprocess.run([args.cuptop, "export", str(recording), "--to", "csv"], capture_output=True, text=True)
    ends = sorted(int(row["end_ns"]) for row in csv.DictReader(done.stdout.splitlines()) if row["name"] == "spin")
    frames = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    held = [shown for _, shown in frames]
    late = []
    for k, end in enumerate(ends, 1):
        frame = bisect.bisect_left(held, k)
        if frame < len(frames):
            late.append((frames[frame][0] - end) / 1e6)
    late.sort()
    at = lambda share: late[min(len(late) - 1, int(share * len(late)))]
    ok = len(late) == len(ends) == count and at(0.99) <= most
    print(f"{'pass' if ok else 'FAIL'}  {name}: end of an operation to its frame, flush {args.flush} ms: median {at(0.5):.1f} ms, p99 {at(0.99):.1f} ms, "
          f"greatest {late[-1]:.1f} ms; {len(late)} of {len(ends)} operations, {len(frames)} frames, "
          f"{written / max(len(frames), 1):.0f} bytes a frame")
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuptop")
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--flush", default="20")
    parser.add_argument("--backend", default="cuda", choices=["cuda", "sim"])
    args = parser.parse_args()
    return sum(not measure(args, *scenario) for scenario in SCENARIOS)


if __name__ == "__main__":
    sys.exit(main())
