#!/usr/bin/env python3
"""How jobs stand, on real GPUs: standing.py CUPTOP [GPUS] [KIND ...].

Starts a small job under torchrun for each kind, brings it to its end state, and asks `cuptop job LAUNCHER`. It checks who is said to be
behind, at which line, how long the answer took, that each rank lives as before, and for healthy kinds that none is said to stand still.
The last lines are a table. Needs torch with NCCL, and as many GPUs."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = '''
import os, sys, time, signal, threading
import torch, torch.distributed as dist
KIND = sys.argv[1]
RANK = int(os.environ["RANK"]); LOCAL = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(LOCAL)
dist.init_process_group("nccl", device_id=torch.device("cuda", LOCAL))
LATE = dist.get_world_size() - 1
x = torch.ones(1 << 20, device="cuda")
a = torch.randn(2048, 2048, device="cuda")

def load_batch():
    time.sleep(600)                                # LINE sleep

def compute():
    sum(range(10**11))                             # LINE compute

def checkpoint():
    end = time.time() + 60
    with open(os.devnull, "wb") as file:
        while time.time() < end:
            file.write(bytes(1 << 20))             # LINE checkpoint

def locked():
    lock = threading.Lock(); lock.acquire(); lock.acquire()   # LINE lock

def held():
    import ctypes
    ctypes.PyDLL(None).sleep(600)                  # LINE gil

class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, at): return time.sleep(600)

def deadlock():
    next(iter(torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork")))   # LINE loader

def crossed():
    first = second if RANK == LATE else other
    dist.all_reduce(x, group=first)                # LINE crossed
    torch.cuda.synchronize()                       # LINE crossed sync
    dist.all_reduce(x, group=other if RANK == LATE else second)

def replayed():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        dist.all_reduce(x)
    for n in range(20):
        graph.replay()
    torch.cuda.synchronize()
    if RANK == LATE: time.sleep(600)               # LINE graph
    graph.replay()
    torch.cuda.synchronize()

other, second = (dist.new_group() for _ in range(2)) if KIND == "crossed" else (None, None)

def reduce():
    dist.all_reduce(x)                             # LINE reduce

def step(n):
    y = a
    for _ in range(20):
        y = y @ a
    late = RANK == LATE and n == 20
    if late and KIND == "sleep": load_batch()
    if late and KIND == "compute": compute()
    if late and KIND == "checkpoint": checkpoint()
    if late and KIND == "lock": locked()
    if late and KIND == "stop": os.kill(os.getpid(), signal.SIGSTOP)
    if late and KIND == "breakpoint": breakpoint() # LINE breakpoint
    if late and KIND == "gil": held()
    if late and KIND == "loader": deadlock()
    if n == 20 and KIND == "crossed": crossed()
    if n == 20 and KIND == "graph": replayed()
    if late and KIND == "mismatch":
        dist.all_gather_into_tensor(torch.empty(dist.get_world_size() << 20, device="cuda"), x)   # LINE gather
    else:
        reduce()
    if KIND == "kernel" and n == 20:
        torch.cuda._sleep(10**13)
    if KIND == "long":
        torch.cuda._sleep(5 * 10**9)
    torch.cuda.synchronize()                       # LINE sync
    if n == 19:
        print("ready", flush=True)

for n in range(10**9):
    step(n)
'''

# kind: who is behind (-1: the last rank, None: nobody), the line, whether it may be said to stand still
KINDS = {
    "sleep": (-1, "sleep", True),
    "lock": (-1, "lock", True),
    "stop": (-1, None, True),
    "breakpoint": (-1, "breakpoint", None),
    "mismatch": (None, "sync", None),
    "kernel": (None, "sync", None),
    "gil": (-1, "gil", True),
    "loader": (-1, "loader", True),
    "graph": (-1, "graph", True),
    "crossed": (None, "crossed sync", None),
    "compute": (-1, "compute", False),
    "checkpoint": (-1, "checkpoint", False),
    "healthy": (None, None, False),
    "long": (None, None, False),
}


def line(text):
    return next((i for i, it in enumerate(PROGRAM.splitlines(), 1) if it.rstrip().endswith("# LINE " + text)), None)


def ranks_of(launcher):
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
            parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        rank = next((it[5:] for it in environment if it.startswith(b"RANK=")), None)
        if rank is not None and parent == launcher:
            found[int(rank)] = int(pid)
    return found


def one(cuptop, gpus, kind, folder):
    program = os.path.join(folder, "train.py")
    open(program, "w").write(PROGRAM)
    port = 29500 + os.getpid() % 1000 + list(KINDS).index(kind)
    job = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={gpus}", f"--master-port={port}", program, kind],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for text in job.stdout:
            if "ready" in text:
                break
        time.sleep(8)
        pids = ranks_of(job.pid)
        said = os.path.join(folder, kind + ".json")
        begin = time.perf_counter()
        asked = subprocess.Popen([cuptop, "job", str(job.pid), "--save", said], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = None
        lines = []
        for text in asked.stdout:
            first = first or time.perf_counter() - begin
            lines.append(text)
        code = asked.wait(60)
        whole = time.perf_counter() - begin
        print(f"--- {kind}: exit {code}, first line after {first or 0:.2f} s, end after {whole:.2f} s")
        print("".join(lines), flush=True)
        alive = sum(os.path.exists(f"/proc/{pid}") for pid in pids.values())
        whole_said = json.load(open(said))["jobs"][0]
        late, at, still = KINDS[kind]
        expected = [] if late is None else [gpus - 1]
        leads = {it["rank"]: next((t for t in it["threads"] if t["leads"]), {}) for it in whole_said["ranks"]}
        lead = leads.get(gpus - 1, {})
        lines_there = [it["line"] for it in lead.get("python", []) if it["file"].endswith("train.py")]
        ok = whole_said["behind"] == expected and alive == gpus and len(leads) == gpus
        ok = ok and (still is None or (whole_said["state"] == "still") == still) and (first or 9) < 2.5
        if at and late is not None and kind != "stop":
            # The debugger stops at the next line.
            ok = ok and line(at) + (kind == "breakpoint") in lines_there
        return [kind, "ok" if ok else "WRONG", whole_said["state"], str(whole_said["behind"]), f"{first or 0:.2f}", f"{alive}/{gpus}",
                str(leads.get(0, {}).get("native")), str((whole_said["nccl"] or ["-"])[0])[:70]]
    finally:
        for pid in ranks_of(job.pid).values():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def main():
    cuptop = os.path.abspath(sys.argv[1])
    import torch
    gpus = int(sys.argv[2]) if len(sys.argv) > 2 else torch.cuda.device_count()
    kinds = sys.argv[3:] or list(KINDS)
    # Jobs side by side would share the port that NCCL answers at.
    os.environ.setdefault("NCCL_RAS_ADDR", f"localhost:{28100 + os.getpid() % 800}")
    strings = f"strings -n 8 $(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])')/lib/libnccl.so.2 | grep -m3 'NCCL version'"
    print("nccl", torch.cuda.nccl.version(), subprocess.run(strings, shell=True, capture_output=True, text=True).stdout.strip())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            try:
                rows.append(one(cuptop, gpus, kind, folder))
            except Exception as error:  # One kind that fails must not hide the others.
                rows.append([kind, "FAILED", repr(error)[:80]])
    print("kind        result state             behind  first  alive  native (rank 0)              nccl")
    for row in rows:
        print(f"{row[0]:11} {row[1]:6} " + "  ".join(f"{it:6}" for it in row[2:]))
    return any(row[1] != "ok" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
