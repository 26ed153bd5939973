#!/usr/bin/env python3
"""How jobs stand, on real GPUs: standing.py [--four] CUPTOP [GPUS] [KIND ...].

Starts a small job under torchrun for each kind, brings it to its end state, and asks `cuptop job LAUNCHER`. It checks who is said to be
behind, at which line, how long the answer took, and for healthy kinds that none is said to stand still. The job is unharmed when each rank
lives as before, and goes on where the kind lets it. The last lines are a table. --four asks for a kernel that never ends, a replayed all-reduce and two communicators in crossed order,
within 250 s. Needs torch with NCCL, and as many GPUs."""
import json
import os
import select
import signal
import socket
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
    time.sleep(30)                                 # LINE sleep

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

def stuck():
    # Who starts a process this way is in D state until the child has opened its files; nobody opens the other end of this one.
    path = os.path.join(sys.path[0], "fifo")
    os.mkfifo(path)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, path, os.O_RDONLY, 0)])   # LINE device

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
for group in (other, second):
    # Connections are made at the first collective of each.
    if group: dist.all_reduce(x, group=group)

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
    if late and KIND == "device": stuck()
    if late and KIND == "dead": os.kill(os.getpid(), signal.SIGKILL)
    if late and KIND == "loader": deadlock()
    if n == 20 and KIND == "crossed": crossed()
    if n == 20 and KIND == "graph": replayed()
    if late and KIND == "mismatch":
        dist.all_gather_into_tensor(torch.empty(dist.get_world_size() << 20, device="cuda"), x)   # LINE gather
    else:
        reduce()
    if KIND == "kernel" and n == 20:
        torch.cuda._sleep(10**13)
    if KIND == "long" and n >= 20:
        torch.cuda._sleep(5 * 10**9)
    torch.cuda.synchronize()                       # LINE sync
    if n == 19:
        print("ready", flush=True)
    elif n % 20 == 0 and n > 20:
        print("goes on", flush=True)

for n in range(10**9):
    step(n)
'''

# Ranks without an agent that ends all when one has died.
LAUNCHER = '''
import os, subprocess, sys, time
world = int(sys.argv[1])
own = lambda rank: {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[2]}
ranks = [subprocess.Popen([sys.executable, *sys.argv[3:]], env=own(rank)) for rank in range(world)]
while any([it.poll() is None for it in ranks]): time.sleep(0.2)
'''

# kind: who is behind (-1: the last rank, None: nobody), the line (of the last rank, or of all where nobody is), whether it may be said to
# stand still (None: either)
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
    "device": (-1, "device", True),
    "dead": (-1, None, True),
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


def goes_on(job, within):
    """Whether a line is printed from now on, in time: the pipe's former ones are read first."""
    os.set_blocking(job.stdout.fileno(), False)
    job.stdout.buffer.read()
    return bool(select.select([job.stdout], [], [], within)[0])


def start(gpus, kind, folder):
    program, launcher = os.path.join(folder, "train.py"), os.path.join(folder, "launch.py")
    open(program, "w").write(PROGRAM)
    open(launcher, "w").write(LAUNCHER)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with_agent = ["-m", "torch.distributed.run", f"--nproc-per-node={gpus}", f"--master-port={port}"]
    before = [launcher, str(gpus), str(port)] if kind == "dead" else with_agent
    log = open(os.path.join(folder, kind + ".log"), "w")
    job = subprocess.Popen([sys.executable, *before, program, kind], stdout=subprocess.PIPE, stderr=log, stdin=subprocess.PIPE, text=True,
                           bufsize=1, start_new_session=True)
    for text in job.stdout:
        if "ready" in text:
            return job
    print(open(log.name).read()[-2000:], flush=True)
    raise RuntimeError("it was never ready")


def is_at(kind, leads, gpus):
    """Whether the threads that lead are said to be at the line."""
    late, at, _ = KINDS[kind]
    # The debugger stops at the next line.
    expected = line(at) + (kind == "breakpoint") if at else None
    of = [gpus - 1] if late is not None else range(gpus)
    lines = lambda rank: [it["line"] for it in leads.get(rank, {}).get("python", []) if it["file"].endswith("train.py")]
    return at is None or all(expected in lines(rank) for rank in of)


def one(cuptop, gpus, kind, folder):
    job = start(gpus, kind, folder)
    pids = {}
    try:
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
        late, _, still = KINDS[kind]
        alive = sum(os.path.exists(f"/proc/{pid}") for pid in pids.values())
        unharmed = alive == gpus - (kind == "dead")
        if kind == "stop":
            os.kill(pids[gpus - 1], signal.SIGCONT)
        if kind == "device":
            os.close(os.open(os.path.join(folder, "fifo"), os.O_WRONLY | os.O_NONBLOCK))
        if kind in ("sleep", "stop", "device", "healthy"):
            unharmed = unharmed and goes_on(job, 40)
        there = json.load(open(said))["jobs"][0]
        leads = {it["rank"]: next((t for t in it["threads"] if t["leads"]), {}) for it in there["ranks"]}
        who = there["behind"] == ([] if late is None else [gpus - 1]) and (still is None or (there["state"] == "still") == still)
        where = is_at(kind, leads, gpus) and len(leads) == gpus
        return [kind, who, where, unharmed, (first or 9) < 2.5, there["state"], str(there["behind"]), f"{first or 0:.2f}", f"{alive}/{gpus}",
                str(leads.get(0, {}).get("native")), str((there["nccl"] or ["-"])[0])[:70]]
    finally:
        for pid in {**ranks_of(job.pid), **pids}.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def main():
    given = [it for it in sys.argv[1:] if it != "--four"]
    cuptop = os.path.abspath(given[0])
    # Ended from outside it ends its job, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    import torch
    gpus = int(given[1]) if len(given) > 1 else torch.cuda.device_count()
    kinds = given[2:] or (["kernel", "graph", "crossed"] if "--four" in sys.argv else list(KINDS))
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
                rows.append([kind, False, False, False, False, repr(error)[:80]])
    print("kind        who   where unharmed soon  state             behind  first  alive  native (rank 0)              nccl")
    word = lambda it: "ok" if it else "WRONG"
    for row in rows:
        print(f"{row[0]:11} {word(row[1]):5} {word(row[2]):5} {word(row[3]):8} {word(row[4]):5} " + "  ".join(f"{it:6}" for it in row[5:]))
    return not all(all(row[1:5]) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
