"""What the programs beside this file share: whether they are cured, and the stamps of their steps."""
import json
import os
import pathlib
import statistics
import time

_mode = ["mistake"]


def modes():
    """Whether each pass is cured: STRANGER_MODE is `mistake`, `cured`, or both with a plus."""
    for mode in os.environ.get("STRANGER_MODE", "mistake").split("+"):
        _mode[0] = mode
        yield mode == "cured"


def write(at, steps, by, warm=0):
    """Keeps stamps: `at` holds the beginning of each step and the end of the last."""
    folder = os.environ.get("STRANGER_STAMPS")
    if not folder or len(at) < 3:
        return
    periods = [b - a for a, b in zip(at, at[1:])]
    kept = dict(steps=steps, warm=warm, mean_ns=(at[-1] - at[0]) / steps, median_ns=statistics.median(periods))
    kept["ns"] = kept[f"{by}_ns"]
    pathlib.Path(folder, f"{_mode[0]}.json").write_text(json.dumps(kept))


def loop(steps, end, by="median", warm=0):
    """Counts steps and stamps the beginning of each. `end` waits for the device, once, behind the last.

    A step that waits for the device is as long as the median of its periods. One that does not is stamped by the CPU,
    which runs ahead: there the mean tells. `warm` is how many of the same steps ran before.
    """
    at = []
    for i in range(steps):
        at.append(time.perf_counter_ns())
        yield i
    end()
    at.append(time.perf_counter_ns())
    write(at, steps, by, warm)
