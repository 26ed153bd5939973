#!/usr/bin/env python3
"""Whether a job that hangs is aborted and restarted as without cuptop: recovery.py CUPTOP [GPUS].

Three jobs side by side under torchrun, with NCCL's watchdog at 20 s and one restart. In each the last rank sleeps in place of a collective.
Nobody looks at the first, `cuptop job` looks at the second all the while it hangs, and `cuptop attach` has entered the third by then.
Right is: each is aborted and works again after its restart, the looked-at ones at most 3 s later than the other. Takes some 90 s; the
last lines are a table, the exit status says whether all was right. Needs torch with NCCL, and as many GPUs."""
import concurrent.futures
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BEGUN = time.monotonic()
PROGRAM = '''
import datetime, os, time
import torch, torch.distributed as dist
rank, again = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20), device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
x = torch.ones(1 << 20, device="cuda")
for n in range(400):
    if n == 200 and not again and rank == dist.get_world_size() - 1:
        print("HANGS", flush=True)
        time.sleep(600)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    time.sleep(0.02)
if rank == 0:
    print("WORKS" if again else "NEVER HUNG", flush=True)
'''


def ranks_of(launcher):
    """The launcher's children that are ranks."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
            is_rank = b"\0RANK=" in b"\0" + open(f"/proc/{pid}/environ", "rb").read()
        except (OSError, IndexError):
            continue
        found += [int(pid)] if parent == launcher and is_rank else []
    return found


def look(cuptop, mode, job, until):
    """Looks at the job as the mode has it. Returns what was done, in words."""
    if mode == "alone":
        return "-"
    if mode == "entered":
        asked = [cuptop, "attach", str(job.pid), "--headless", "--duration", "45s"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=100)
        return f"attach: exit {done.returncode}; {(done.stdout + done.stderr).strip().splitlines()[0][:100] if done.stdout + done.stderr else ''}"
    codes = []
    while not until.is_set() and len(codes) < 20:
        codes.append(subprocess.run([cuptop, "job", str(job.pid)], capture_output=True, text=True, timeout=60).returncode)
        until.wait(1)
    return f"job: {len(codes)} times, exits {sorted(set(codes))}"


def one(cuptop, gpus, mode, folder, pool):
    program = os.path.join(folder, "train.py")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {**os.environ, "NCCL_RAS_ADDR": f"localhost:{port % 20000 + 30000}", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    job = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={gpus}", "--max-restarts=1", "--standalone", program],
                           stdout=subprocess.PIPE, stderr=open(os.path.join(folder, mode + ".log"), "w"), text=True, bufsize=1, env=own, start_new_session=True)
    alarm = threading.Timer(150, lambda: os.killpg(job.pid, signal.SIGKILL))
    alarm.start()
    looked, works, until = None, None, threading.Event()
    try:
        for text in job.stdout:
            print(f"{mode}: {text.strip()} at {time.monotonic() - BEGUN:.1f} s", flush=True)
            if "HANGS" in text:
                hung = time.monotonic()
                first = set(ranks_of(job.pid))
                # By then the kernel counts that nobody runs, and NCCL still waits.
                looked = pool.submit(lambda: time.sleep(3) or look(cuptop, mode, job, until))
                gone = pool.submit(lambda: wait_for(lambda: not first & set(ranks_of(job.pid)), 150, hung))
            if "WORKS" in text:
                works = time.monotonic() - hung
                until.set()
        code = job.wait()
        # Which of its two ways of giving up NCCL took, and what it waited for.
        print(mode, code, "".join(open(os.path.join(folder, mode + ".log")).readlines()[-6:])[-900:], flush=True)
        return [mode, code, gone.result(), works, looked.result()]
    finally:
        until.set()
        alarm.cancel()
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)


def wait_for(what, within, since):
    """Seconds until it holds; nothing where it does not."""
    while time.monotonic() - since < within:
        if what():
            return time.monotonic() - since
        time.sleep(0.1)
    return None


def main():
    import torch
    cuptop = os.path.abspath(sys.argv[1])
    gpus = int(sys.argv[2]) if len(sys.argv) > 2 else torch.cuda.device_count()
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(12) as pool:
        open(os.path.join(folder, "train.py"), "w").write(PROGRAM)
        jobs = {mode: pool.submit(one, cuptop, gpus, mode, folder, pool) for mode in ("alone", "looked", "entered")}
        for mode, job in jobs.items():
            try:
                rows.append(job.result())
            except Exception as error:  # One that fails must not hide the others.
                print(mode, repr(error)[:300], open(os.path.join(folder, mode + ".log")).read()[-2000:], flush=True)
                rows.append([mode, None, None, None, repr(error)[:80]])
    alone = rows[0]
    wrong = 0
    print("job      aborted after  works again after  ends with  looked")
    for mode, code, gone, works, said in rows:
        right = code == 0 and None not in (gone, works, alone[2], alone[3]) and gone <= alone[2] + 3 and works <= alone[3] + 3
        wrong += not right
        print(f"{mode:8} {gone or -1:11.1f} s {works or -1:15.1f} s  {code!s:9}  {said}  {'ok' if right else 'WRONG'}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
