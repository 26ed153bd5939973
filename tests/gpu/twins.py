#!/usr/bin/env python3
"""What a late rank costs, foretold and measured: twins.py [--four] CUPTOP [GPUS] [SECONDS] [BASE ...].

Each base is a job: `launch` is held up by its CPUs' launching (FSDP2), `compute` by its GPUs (DDP, the loss is read each step), `tensor` too (tensor
parallel, in bfloat16), `ahead` too, but nobody waits for the GPU. Each has twins: `healthy`; the last rank sleeps on each step for 10 % or 40 % of a
step; or for a whole step on every tenth. Steps are measured without cuptop, eight times 50 steps of each twin in turn in one job, and while a twin is
recorded. What is foretold of a recording of the late twin (`report --json`) is held to late minus healthy without cuptop (the mean of eight, beside
it its standard error), within 1 ms or 20 %; where the power cap holds a GPU down, to at least that. Of the healthy twin at most 1 % may be foretold.
Recordings of up to 16 MB go to $OUT, eight of them. The last lines are a table. --four is for 250 s on four GPUs: FSDP2 and DDP, each healthy, late
on each step and on every tenth; half as many rounds, and reports are made beside the next recording. TWINS=healthy,tenth in the environment asks for these, RECORDINGS=2 for two recordings of each.
Needs torch with NCCL, and as many GPUs."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time

PROGRAM = '''
import os, statistics, sys, time
import torch, torch.distributed as dist, torch.nn as nn
BASE, LENGTH, KINDS = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(",")
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(RANK)
dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
torch.manual_seed(0)

def launch():
    from torch.distributed.fsdp import fully_shard
    layers = [nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True) for _ in range(8)]
    net = nn.Sequential(*layers).cuda()
    for it in net:
        fully_shard(it)
    fully_shard(net)
    return net, torch.randn(4, 64, 256, device="cuda")

def compute():
    net = nn.Sequential(*[nn.Linear(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(12)])
    return nn.parallel.DistributedDataParallel(net), torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)

class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous(); dist.all_reduce(grad); return grad

class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x); return x
    @staticmethod
    def backward(ctx, grad): return grad

class Shard(nn.Module):
    def __init__(self):
        super().__init__()
        wide = dict(device="cuda", dtype=torch.bfloat16)
        self.up, self.down = nn.Linear(4096, 16384 // WORLD, **wide), nn.Linear(16384 // WORLD, 4096, bias=False, **wide)
    def forward(self, x): return x + Leave.apply(self.down(torch.relu(self.up(Enter.apply(x)))))

def tensor():
    return nn.Sequential(*[Shard() for _ in range(6)]), torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

net, x = {"launch": launch, "tensor": tensor}.get(BASE, compute)()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)

def load(late):
    time.sleep(late)                               # LINE load

def step(late):
    if late:
        load(late)
    loss = net(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if BASE in ("compute", "tensor"):
        loss.item()

def run(kind, length, steps):
    """Mean step in ms, from the first begin to the last end over all ranks."""
    late = {"every10": 0.1, "every40": 0.4, "tenth": 1.0}.get(kind, 0.0) * length / 1e3
    torch.cuda.synchronize(); dist.barrier(); torch.cuda.synchronize()
    begin = time.perf_counter()
    for at in range(steps):
        step(late if RANK == WORLD - 1 and (kind != "tenth" or at % 10 == 5) else 0.0)
    launched = torch.tensor([(time.perf_counter() - begin) * 1e3 / steps], device="cuda")
    torch.cuda.synchronize(); dist.barrier(); torch.cuda.synchronize()
    took = (time.perf_counter() - begin) * 1e3 / steps
    of_ranks = [torch.zeros_like(launched) for _ in range(WORLD)]
    dist.all_gather(of_ranks, launched)
    return took, [round(it.item(), 2) for it in of_ranks]

STEPS, ROUNDS = 50, int(os.environ.get("ROUNDS", "8"))
# A recording is of one twin from its first step on.
run(KINDS[0] if LENGTH else "healthy", LENGTH, 20)
if LENGTH == 0:
    length = torch.tensor([run("healthy", 0, 20)[0]], device="cuda")
    dist.broadcast(length, 0)
    LENGTH = length.item()
    if RANK == 0: print("LENGTH", LENGTH, flush=True)
means = {kind: [] for kind in KINDS}
for kind in KINDS * (ROUNDS if len(KINDS) > 1 else 1):
    took, launched = run(kind, LENGTH, STEPS)
    means[kind].append(took)
    if RANK == 0: print("ROUND", kind, f"{took:.2f}, to launch it", launched, flush=True)
for kind in KINDS:
    # Twins run in turn, so that each has a healthy one beside it.
    more = [it - of for it, of in zip(means[kind], means[KINDS[0]])]
    error = statistics.stdev(more) / len(more) ** 0.5 if len(more) > 1 else 0.0
    if RANK == 0: print("STEP", kind, statistics.mean(means[kind]), error, flush=True)
dist.destroy_process_group()
'''

# Starts ranks without a library that takes seconds to load.
LAUNCHER = '''
import os, subprocess, sys
world = int(sys.argv[1])
own = lambda rank: {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[2],
                    "OMP_NUM_THREADS": "4"}
ranks = [subprocess.Popen([sys.executable, *sys.argv[3:]], env=own(rank)) for rank in range(world)]
sys.exit(max(it.wait() for it in ranks))
'''
IS_FOUR = "--four" in sys.argv
ARGUMENTS = [it for it in sys.argv[1:] if it != "--four"]
if IS_FOUR:
    os.environ.setdefault("ROUNDS", "4")
KINDS = os.environ.get("TWINS", "healthy,every10,tenth" if IS_FOUR else "healthy,every10,every40,tenth").split(",")
LARGEST, MOST = 16 << 20, 8
PORT = [29600 + os.getpid() % 300]


def started(folder, gpus, before, base, length, kinds):
    """Runs a job; returns its length of a step, its means by kind, and how well it is known what each takes more than the first."""
    PORT[0] += 1
    job = [sys.executable, os.path.join(folder, "launch.py"), str(gpus), str(PORT[0]), os.path.join(folder, "train.py"), base, str(length), ",".join(kinds)]
    done = subprocess.run([*before, *job], capture_output=True, text=True, timeout=150)
    words = [it.split() for it in done.stdout.splitlines()]
    steps = [it for it in words if len(it) == 4 and it[0] == "STEP"]
    means, errors = {it[1]: float(it[2]) for it in steps}, {it[1]: float(it[3]) for it in steps}
    print("".join(it + "\n" for it in done.stdout.splitlines() if it.startswith("ROUND")), end="", flush=True)
    lengths = [float(it[1]) for it in words if len(it) == 2 and it[0] == "LENGTH"]
    if len(means) < len(kinds):
        print(done.stdout[-1500:], done.stderr[-3000:], flush=True)
        raise RuntimeError(f"{base} {kinds} did not end: {done.returncode}")
    return (lengths or [length])[0], means, errors


def foretold(cuptop, recording):
    said = json.loads(subprocess.run([cuptop, "report", recording, "--json"], capture_output=True, text=True, timeout=120).stdout)
    late = (said.get("job") or {}).get("late") or []
    first = late[0] if late else {}
    saved = (first.get("step_ns") or 0) - (first.get("step_without_ns") or 0)
    return saved / 1e6, first.get("rank"), said["verdicts"][0]["text"], (first.get("step_ns") or 0) / 1e6, first.get("is_capped", False)


def keep(at, out):
    """Keeps a recording, as far as there is room for it."""
    kept = os.path.join(out, os.path.basename(at) + ".tgz")
    if sum(it.endswith(".tgz") for it in os.listdir(out)) >= MOST:
        return
    with tarfile.open(kept, "w:gz", compresslevel=3) as file:
        file.add(at, arcname=os.path.basename(at))
    if os.path.getsize(kept) > LARGEST:
        print(f"{os.path.basename(kept)} has {os.path.getsize(kept) >> 20} MB and is not kept", flush=True)
        os.remove(kept)


def main():
    cuptop = os.path.abspath(ARGUMENTS[0])
    gpus = int(ARGUMENTS[1]) if len(ARGUMENTS) > 1 else 4 if IS_FOUR else 2
    until = time.monotonic() + (float(ARGUMENTS[2]) if len(ARGUMENTS) > 2 else 225 if IS_FOUR else 1e9)
    bases = ARGUMENTS[3:] or (["launch", "compute"] if IS_FOUR else ["launch", "compute", "ahead"])
    out = os.environ.get("OUT")
    rows, pool = [], concurrent.futures.ThreadPoolExecutor(4 if IS_FOUR else 1)
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "train.py"), "w").write(PROGRAM)
        open(os.path.join(folder, "launch.py"), "w").write(LAUNCHER)
        for base in bases:
            recorded, length = {}, None
            for kind in [None, *KINDS * int(os.environ.get("RECORDINGS", "1"))]:
                if time.monotonic() + 20 > until:
                    print(f"no time is left for {base} {kind or ''}", flush=True)
                    break
                began = time.monotonic()
                try:
                    if kind is None:
                        length, plain, errors = started(folder, gpus, [], base, 0, KINDS)
                        print(base, f"{time.monotonic() - began:.0f} s, without cuptop, late by {length:.2f} ms a step or a part of it:", {k: round(v, 2) for k, v in plain.items()}, flush=True)
                        continue
                    at = os.path.join(folder, f"{base}_{kind}_{len(rows)}")
                    _, means, _ = started(folder, gpus, [cuptop, "trace", "--headless", "--save", at, "--"], base, length, [kind])
                    recorded[kind] = means[kind]
                    said = pool.submit(foretold, cuptop, at)
                    if not IS_FOUR:
                        # Beside a recording it would take processors from it where there are few.
                        said.exception()
                    if out:
                        keep(at, out)
                    rows.append((base, kind, plain[kind], plain[kind] - plain["healthy"], errors[kind], means[kind], means[kind] - recorded["healthy"], said))
                    print(f"{base} {kind} {time.monotonic() - began:.0f} s", flush=True)
                except Exception as error:  # One twin that fails must not hide the others.
                    print(f"{base} {kind}: {error!r}"[:300], flush=True)
                    if kind is None:
                        break
        # The recordings go with the folder.
        pool.shutdown()
    print("base     twin      step  more  error | recorded: step  more | foretold  of  rank   headline        (ms; +: at most)")
    wrong = 0
    for base, kind, plain, more, error, step, recorded, said in rows:
        if said.exception():
            print(f"{base:8} {kind:8} its report failed: {said.exception()!r}"[:200])
            wrong += 1
            continue
        saved, rank, text, of, capped = said.result()
        off = min(saved - more, 0.0) if capped else saved - more
        right = saved <= 0.01 * step if kind == "healthy" else abs(off) <= max(1.0, 0.2 * abs(more))
        right = right and (saved <= 1.0 or rank in (None, gpus - 1))
        wrong += not right
        print(f"{base:8} {kind:8} {plain:6.2f} {more:5.2f} {error:5.2f}  | {step:14.2f} {recorded:5.2f} | {saved:8.2f}{'+' if capped else ' '} {of:5.2f} {str(rank):4} {'ok   ' if right else 'WRONG'} {text[:90]}")
    print(f"{wrong} of {len(rows)} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
