#!/usr/bin/env python3
"""What a screen costs that follows a recording of many operations: processor time by view, where little and where much was recorded before.

    benches/follow.py CUPTOP [SECONDS] [OPERATIONS_BEFORE…]

A program on the fake CUPTI (tests/fake) makes the operations at once, then 2,000 launches a second. Needs a C compiler. What
is allowed: 5 % of a core for each view, and after 10^7 operations 1.5 times what it takes after 10^5. Ends with 1 where it is more.
"""
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import threading
import time

FAKE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fake"
VIEWS = ["timeline", "operations", "findings"]
cuptop = sys.argv[1]
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
amounts = [int(it) for it in sys.argv[3:]] or [100_000, 10_000_000]


def build(work):
    shared = ["cc", "-O1", "-shared", "-fPIC", "-pthread"]
    for name, source in [("libcuda.so.1", "libcuda.c"), ("libcupti.so.13", "libcupti.c")]:
        subprocess.run([*shared, f"-Wl,-soname,{name}", "-o", work / name, FAKE / source, "-ldl"], check=True)
    subprocess.run(["cc", "-O1", "-pthread", "-o", work / "program", FAKE / "program.c", "-ldl"], check=True)


def processor(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(view, folder):
    """A screen in a terminal of its own, whose bytes are read and left."""
    outer, inner = pty.openpty()
    screen = subprocess.Popen([cuptop, "open", folder, "--view", view], stdin=inner, stdout=inner, stderr=inner,
                              env=dict(os.environ, TERM="xterm-256color", LINES="40", COLUMNS="120"))

    def drain():
        try:
            while os.read(outer, 65536):
                pass
        except OSError:
            pass

    threading.Thread(target=drain, name=view, daemon=True).start()
    return screen, outer, inner


def measure(work, before):
    """Of each view, the part of a core that it takes."""
    folder = work / f"of-{before}"
    command = [cuptop, "trace", "--headless", "--save", folder, "--", "env", f"LD_LIBRARY_PATH={work}",
               f"CUPTOP_CUPTI={work}/libcupti.so.13", work / "program", "soak", "20", str(int(seconds) + 60), str(before // 2)]
    traced = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # A launch is two operations. The recording is whole when it grows slowly.
    size, grown = 0, 1 << 30
    while not size or grown > 1 << 20:
        time.sleep(2)
        now = sum(it.stat().st_size for it in folder.glob("*.cuptop")) if folder.exists() else 0
        size, grown = now, now - size
    screens = {view: watch(view, folder) for view in VIEWS}
    # They read what is there first.
    last = {view: 0.0 for view in VIEWS}
    for _ in range(30):
        time.sleep(2)
        now = {view: processor(screens[view][0].pid) for view in VIEWS}
        settled = all(now[view] - last[view] < 0.5 for view in VIEWS)
        last = now
        if settled:
            break
    time.sleep(seconds)
    share = {view: (processor(screens[view][0].pid) - last[view]) / seconds for view in VIEWS}
    for screen, *ends in screens.values():
        screen.kill()
        screen.wait()
        for end in ends:
            os.close(end)
    traced.terminate()
    traced.wait()
    return share


wrong = False
with tempfile.TemporaryDirectory() as made:
    work = pathlib.Path(made)
    os.chmod(work, 0o700)
    build(work)
    costs = [measure(work, before) for before in amounts]
print("view        " + "".join(f"{before:>14,}" for before in amounts))
for view in VIEWS:
    print(f"{view:12}" + "".join(f"{cost[view]:13.1%} " for cost in costs))
    wrong |= max(cost[view] for cost in costs) > 0.05 or costs[-1][view] > 1.5 * max(costs[0][view], 0.005)
sys.exit(wrong)
