"""What the programs of truths.toml share: whether they run cured, and how long a step takes."""
import os
import statistics
import sys
import time

cured = "--cured" in sys.argv
seconds = float(os.environ.get("GAUGE_SECONDS", 4.5))
# judge_strangers.py starts a program while another one still runs: it goes on when the other is over.
gate = os.environ.get("GAUGE_GATE")
while gate and not os.path.exists(gate):
    time.sleep(0.02)


def say(took):
    print(f"step_ms {statistics.median(took) * 1e3:.4f}", flush=True)


def steps(wait, each=1, warm=5, least=0):
    """Counts steps for some seconds, `least` at least, and prints their median at the end. `wait` waits for the device, after every `each` of them."""
    yield from range(warm)
    wait()
    took, begun, i = [], time.perf_counter(), warm
    end = begun + seconds
    while begun < end or i < least:
        for i in range(i, i + each):
            yield i
        i += 1
        if each > 1:
            wait()
        now = time.perf_counter()
        took.append((now - begun) / each)
        begun = now
    wait()
    say(took)


def passes(done):
    """Prints the median time of a pass that threads work on meanwhile; `done` says how many they have done."""
    took, before, begun = [], done(), time.perf_counter()
    end = begun + seconds
    while begun < end:
        time.sleep(0.2)
        now, number = time.perf_counter(), done()
        if number > before:
            took.append((now - begun) / (number - before))
            begun, before = now, number
    say(took)
