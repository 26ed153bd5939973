#!/usr/bin/env python3
"""What `cuptop attach` leaves behind in programs that run, and what it records of their calls: entered.py CUPTOP [OUT] [--times N].

calls: programs of attach.py are recorded for 3 s. At most 0.1 % of their operations may have no call.
captures: five programs capture, instantiate and replay graphs one after the other. Each is entered N times at random moments; all must
end well with the result that they know, and each recording must hold kernels, or say why it has none.

Needs a GPU and torch. The table comes last; the exit status is the number of checks that failed. Takes some 80 s."""
import concurrent.futures
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ME = os.path.abspath(__file__)


def capturing():
    """Sixty graphs in a row, again and again, until its input ends."""
    import select
    import torch
    x, stream, rounds = torch.zeros(256, device="cuda"), torch.cuda.Stream(), 0
    torch.cuda.synchronize()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        kept = []
        for _ in range(60):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode=("global", "thread_local", "relaxed")[rounds % 3])
                for _ in range(10):
                    x.add_(1)
                graph.capture_end()
            kept.append(graph)
        for graph in kept:
            graph.replay()
        torch.cuda.synchronize()
        rounds += 1
    print(json.dumps({"right": x[0].item() == float(rounds * 600) or rounds * 600 >= 1 << 24, "rounds": rounds}), flush=True)


def attach(cuptop, pid, save, length):
    shutil.rmtree(save, ignore_errors=True)
    done = subprocess.run([cuptop, "attach", str(pid), "--headless", "--json", "--duration", length, "--save", save, "--python", "off", "--hardware", "off"],
                          capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def captures(cuptop, out, number, times):
    program = subprocess.Popen([sys.executable, ME, "--capturing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    program.stdout.readline()
    moments, kernels, refused = random.Random(number), 0, []
    for at in range(times):
        time.sleep(moments.uniform(0.0, 0.3))
        if program.poll() is not None:
            break
        code, said, why = attach(cuptop, program.pid, os.path.join(out, f"capturing-{number}"), "300ms")
        found = sum(it["kernels"] for it in json.loads(said)["devices"]) if code == 0 and said.startswith("{") else 0
        kernels += found > 0
        refused += [] if found else [f"{code} {why[-150:]}"]
    said, errors = program.communicate("end\n", timeout=60)
    right = program.returncode == 0 and '"right": true' in said
    return right, kernels, refused, f"exit {program.returncode} {said.strip()} {errors[-200:] if program.returncode else ''}"


def calls(cuptop, out, name):
    program = subprocess.Popen([sys.executable, os.path.join(HERE, "attach.py"), "--program", name, "30", os.path.join(out, name + ".json")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(14)
        save = os.path.join(out, "calls-" + name)
        code, _, why = attach(cuptop, program.pid, save, "3s")
        if code:
            return name, None, None, why[-200:]
        subprocess.run([cuptop, "export", save, "-o", save + ".sqlite"], check=True, capture_output=True)
        count, bare = sqlite3.connect(save + ".sqlite").execute("SELECT count(*), sum(call_id IS NULL) FROM operations").fetchone()
        return name, count, bare or 0, ""
    finally:
        program.kill()
        program.wait()


def main():
    if sys.argv[1] == "--capturing":
        return capturing()
    cuptop, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2] if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else "gpu-entered")
    times = int(sys.argv[sys.argv.index("--times") + 1]) if "--times" in sys.argv else 10
    os.makedirs(out, exist_ok=True)
    wrong, table = 0, []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for name, count, bare, why in pool.map(lambda it: calls(cuptop, out, it), ["eager", "graph", "jax"]):
            right = bool(count) and bare <= 0.001 * count
            wrong += not right
            table.append(f"{'ok  ' if right else 'OFF '} {name}: {bare} of {count} operations have no call {why}")
        print("\n".join(table), flush=True)
        for right, kernels, refused, said in pool.map(lambda it: captures(cuptop, out, it, times), range(5)):
            wrong += not right
            table.append(f"{'ok  ' if right else 'OFF '} captures: entered {times} times, {kernels} recordings with kernels, {said} {sorted(set(refused))[:2]}")
    print("\n".join(table))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
