#!/usr/bin/env python3
"""What is injected into a program leaves it as it is, each feature alone and all together: injected.py CUPTOP [OUT] [--pairs N] [--graphs N] [--only cost,often,unharmed] [--looks default,lines].

unharmed: one program captures graphs in each of the three modes, forks, starts another program that uses CUDA, runs out of GPU
memory, goes on, and ends among daemon threads that launch. What it says and its exit code must be those that it has alone.

often: captures, instantiates and replays graphs of 200 nodes, thousands of times; its memory must grow no more than without
names once the first tenth is over, and it must not take more than 3 % longer than without names.

cost: a C++ loop of launches (probe.cpp) by turns under the least collector there can be (minimal_injection.cpp), cuptop as it comes,
and with all that it can do. What is on by default should hold 1.05 of the least; the rest is printed.

Needs a GPU, g++ and torch. The table comes last; the exit status is the number of checks that failed. Takes some 150 s."""
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ME = os.path.abspath(__file__)
LOOK = {
    "default": [],
    "lines": ["--lines", "on"],
    "stalls": ["--stalls", "on"],
    "waits": ["--waits", "on"],
    "off": ["--lines", "off", "--python", "off", "--hardware", "off"],
    "all": ["--lines", "on", "--stalls", "on", "--waits", "on"],
}


def hard():
    import threading
    import torch
    say = lambda *words: print(*words, flush=True)
    x = torch.ones(1 << 16, device="cuda")

    def work():
        y = x
        for _ in range(10):
            y = y * 1.0001
        return y

    work()
    for mode in ("global", "thread_local", "relaxed"):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode=mode):
            out = work()
        for _ in range(20):
            graph.replay()
        say("captured", mode, f"{out.sum().item():.3f}")
    child = os.fork()
    if child == 0:
        os._exit(7)
    say("forked", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    other = "import torch; x = torch.ones(4, device='cuda').add_(1); print('other', x.sum().item(), flush=True)"
    say("started", subprocess.run([sys.executable, "-c", other]).returncode)
    held = []
    try:
        while True:
            held.append(torch.empty(8 << 30, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        say("out of memory", len(held) > 2)
    work()
    torch.cuda.synchronize()
    del held
    torch.cuda.empty_cache()
    say("works", f"{work().sum().item():.3f}")

    def forever():
        z = torch.ones(1 << 10, device="cuda")
        while True:
            z.add_(1)

    for _ in range(8):
        threading.Thread(target=forever, daemon=True).start()
    time.sleep(1)
    say("ends")
    sys.exit(3)


def many(count, nodes):
    """Prints what a round takes in ms, and the memory at its tenth, and at its end, in MB."""
    import torch
    x, stream = torch.ones(64, device="cuda"), torch.cuda.Stream()
    memory = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
    took, at_tenth = [], 0.0
    for number in range(count):
        begun = time.perf_counter()
        graph = torch.cuda.CUDAGraph()
        # torch.cuda.graph would collect garbage each time.
        with torch.cuda.stream(stream):
            graph.capture_begin()
            for _ in range(nodes):
                x.add_(1)
            graph.capture_end()
        graph.replay()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begun)
        del graph
        if number == count // 10:
            at_tenth = memory()
    print(json.dumps({"ms": statistics.median(took) * 1e3, "whole_s": sum(took), "tenth_mb": at_tenth, "end_mb": memory()}), flush=True)


def run(command, log, environment=None, within=120):
    with open(log, "w") as file:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=file, text=True, timeout=within, env={**os.environ, **(environment or {})})
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            return "never", (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""


def traced(cuptop, out, name, options, command, environment=None, within=120):
    # The report goes to standard output behind what the program says.
    return run([cuptop, "trace", "--headless", *options, "--save", os.path.join(out, name), "--", *command], os.path.join(out, name + ".log"), environment, within)


def said_by(text):
    words = ("captured", "forked", "other", "started", "out of", "works", "ends")
    return [line for line in text.splitlines() if line.startswith(words)]


def unharmed(cuptop, out, table, looks):
    wrong = 0
    command = [sys.executable, ME, "--hard"]
    alone = [run(command, os.path.join(out, f"alone{at}.log")) for at in range(2)]
    codes = {it[0] for it in alone}
    truth = said_by(alone[0][1])
    table.append(f"{'ok  ' if len(truth) == 9 else 'OFF '} alone: exits {sorted(map(str, codes))}, {len(truth)} lines")
    wrong += len(truth) != 9
    for name in looks or LOOK:
        options, begun = LOOK[name], time.monotonic()
        code, text = traced(cuptop, out, "hard-" + name, options, command)
        # cuptop ends with 128 and the signal's number where the program was ended by one.
        right = code in {128 - it if isinstance(it, int) and it < 0 else it for it in codes} and said_by(text) == truth
        wrong += not right
        table.append(f"{'ok  ' if right else 'OFF '} {name:8} exit {code}, {time.monotonic() - begun:.1f} s, says {len(said_by(text))} of {len(truth)} lines {'' if said_by(text) == truth else said_by(text)}")
    return wrong


def often(cuptop, out, table, count):
    wrong, found = 0, {}
    command = [sys.executable, ME, "--many", str(count), "200"]
    for name, options in (("off", LOOK["off"]), ("default", [])):
        code, text = traced(cuptop, out, "many-" + name, options, command, within=200)
        lines = [it for it in text.splitlines() if it.startswith('{"ms"')]
        if code != 0 or not lines:
            table.append(f"OFF  {count} graphs, {name}: exit {code}, {text[-200:]!r}")
            return wrong + 1
        found[name] = json.loads(lines[0])
    off, on = found["off"], found["default"]
    # The driver's own memory grows, too.
    grew = on["end_mb"] - on["tenth_mb"] - (off["end_mb"] - off["tenth_mb"])
    right = [grew < 64, on["whole_s"] <= 1.03 * off["whole_s"]]
    wrong += 2 - sum(right)
    table.append(f"{'ok  ' if right[0] else 'OFF '} {count} graphs of 200 nodes: memory grew {grew:.1f} MB more from a tenth to the end than without ({off['end_mb'] - off['tenth_mb']:.1f})")
    table.append(f"{'ok  ' if right[1] else 'OFF '} they took {on['whole_s']:.2f} s, {off['whole_s']:.2f} without names ({on['whole_s'] / off['whole_s']:.3f}; 1.03 asked); a round at the median {on['ms']:.2f} and {off['ms']:.2f} ms")
    notes = {it.strip()[:120] for it in open(os.path.join(out, "many-default.log")) if "get no names" in it}
    table.extend(sorted(notes))
    return wrong


def cost(cuptop, out, table, pairs):
    probe, least = os.path.join(out, "probe"), os.path.join(out, "minimal.so")
    subprocess.run(["g++", "-std=c++17", "-O2", "-o", probe, os.path.join(HERE, "probe.cpp"), "-ldl", "-lpthread"], check=True)
    subprocess.run(["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-o", least, os.path.join(HERE, "minimal_injection.cpp"), "-ldl", "-lpthread"], check=True)
    launches = [probe, "launches", "2000", "60"]
    ways = {"least": None, **{name: LOOK[name] for name in ("default", "lines", "waits", "stalls", "all")}}
    found = {name: [] for name in ways}
    for turn in range(pairs):
        for name, options in list(ways.items())[:: 1 if turn % 2 else -1]:
            log = os.path.join(out, f"cost-{name}-{turn}")
            if options is None:
                code, text = run(launches, log + ".log", {"CUDA_INJECTION64_PATH": least})
            else:
                code, text = traced(cuptop, out, f"cost-{name}-{turn}", options, launches)
            said = [json.loads(it) for it in text.splitlines() if it.startswith('{') and "ns_per_launch" in it]
            if said:
                found[name].append(said[-1]["ns_per_launch"] / 1e3)
            else:
                print(f"{name}: exit {code}, {text[-200:]!r}", flush=True)
    middle = {name: statistics.median(it) if it else float("nan") for name, it in found.items()}
    for name, figure in middle.items():
        ratio = figure / middle["least"]
        is_asked = name == "default"
        word = "    " if not is_asked else "ok  " if ratio <= 1.05 else "OFF "
        spread = f"{min(found[name], default=0):.2f} to {max(found[name], default=0):.2f}"
        table.append(f"{word} a launch under {name:8} {figure:6.2f} us ({spread}), {ratio:.3f} of the least")
    return int(not middle["default"] / middle["least"] <= 1.05)


def main():
    if sys.argv[1] == "--hard":
        return hard()
    if sys.argv[1] == "--many":
        return many(int(sys.argv[2]), int(sys.argv[3]))
    pairs = int(sys.argv[sys.argv.index("--pairs") + 1]) if "--pairs" in sys.argv else 5
    graphs = int(sys.argv[sys.argv.index("--graphs") + 1]) if "--graphs" in sys.argv else 6000
    cuptop, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2] if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else "gpu-injected")
    os.makedirs(out, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    looks = sys.argv[sys.argv.index("--looks") + 1].split(",") if "--looks" in sys.argv else []
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else ["cost", "often", "unharmed"]
    parts = {"cost": lambda: cost(cuptop, out, table, pairs), "often": lambda: often(cuptop, out, table, graphs), "unharmed": lambda: unharmed(cuptop, out, table, looks)}
    wrong, table = 0, []
    for part in map(parts.get, only):
        begun = time.monotonic()
        try:
            wrong += part()
        except Exception as error:  # One part that fails must not hide the others.
            wrong += 1
            table.append(f"OFF  {error!r}"[:300])
        table.append(f"     ({time.monotonic() - begun:.0f} s)")
        print("\n".join(table), "\n", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
