#!/usr/bin/env python3
"""tests/soak.py CUPTOP FAKES SECONDS [OPERATIONS_BEFORE]: whether anything grows that should not.

For so long it records a program, which has made so many operations before, follows that recording on a screen, watches a scenario
that is written anew each second, and attaches to a program and leaves it, 100 times in all. Each tenth of the time it prints memory (KiB), descriptors, threads and seconds of processor of all
four, and at the end the processor's share in each third. FAKES is a folder with what `tests/attach/harness.rs` makes of `tests/fake`: `program`, `libcuda.so.1`, `libcupti.so.13`."""
import os, pty, shutil, subprocess, sys, tempfile, threading, time

cuptop, fakes, seconds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
before = int(sys.argv[4]) if len(sys.argv) > 4 else 0
folder = tempfile.mkdtemp()
env = dict(os.environ, LD_LIBRARY_PATH=fakes, CUPTOP_CUPTI=fakes + "/libcupti.so.13", TERM="xterm-256color")
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

def on_screen(*arguments):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([cuptop, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    def read():
        try:
            while os.read(ours, 1 << 16): pass
        except OSError: pass
    threading.Thread(target=read, daemon=True).start()
    return process

def figures(pid):
    status = open(f"/proc/{pid}/status").read()
    number = lambda name: int(status.split(name + ":")[1].split()[0])
    used = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    used = (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    return number("VmRSS"), len(os.listdir(f"/proc/{pid}/fd")), number("Threads"), used

scenario = folder + "/s.toml"
text = 'name = "soak"\n[buffers.x]\nbytes = "1 MiB"\n[[variant]]\nname = "v"\nsteps = [{ for = "i in 0..%d", do = [{ h2d = "x" }] }]\n'
open(scenario, "w").write(text % 5)
common = ["--hardware", "off", "--python", "off", "--save"]
traced = subprocess.Popen([cuptop, "trace", "--headless", *common, folder + "/job", "--", fakes + "/program", "soak", "20", str(seconds + 600), str(before // 2)], env=env, **quiet)
time.sleep(2)
left = subprocess.Popen([fakes + "/program", "late"], env=env, stdin=subprocess.PIPE, **quiet)
time.sleep(1)
all_of_them = {"trace": traced, "open": on_screen("open", folder + "/job"), "run": on_screen("run", "--backend", "sim", scenario), "attached": left}
begun, rounds, printed, rows = time.time(), 0, 0, []

def row():
    passed = time.time() - begun
    seen = {name: figures(it.pid) if it.poll() is None else it.returncode for name, it in all_of_them.items()}
    print(f"{passed:5.0f} s", seen, flush=True)
    return passed, seen

while time.time() - begun < seconds:
    passed = time.time() - begun
    open(scenario, "w").write(text % (5 + int(passed) % 7))
    if rounds < 100 and passed >= rounds * seconds / 100:
        rounds += 1
        attach = [cuptop, "attach", str(left.pid), "--headless", "--duration", "500ms", *common, f"{folder}/a{rounds}"]
        done = subprocess.run(attach, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode: print(f"attach {rounds} ended with {done.returncode}: {done.stderr.strip()}", flush=True)
        shutil.rmtree(f"{folder}/a{rounds}", ignore_errors=True)
    if passed >= printed * seconds / 10:
        printed += 1
        rows.append(row())
    time.sleep(max(0.0, 1 - (time.time() - begun - passed)))
rows.append(row())
print(rounds, "times attached")
thirds = [min(rows, key=lambda it: abs(it[0] - part * seconds / 3)) for part in range(4)]
for name in all_of_them:
    if all(isinstance(of[name], tuple) for _, of in thirds):
        shares = ((b[name][3] - a[name][3]) / (then - now) for (now, a), (then, b) in zip(thirds, thirds[1:]))
        print(name, "processor by thirds:", ", ".join(f"{share:.2%}" for share in shares))
for it in all_of_them.values(): it.terminate()
for it in all_of_them.values(): it.wait()
shutil.rmtree(folder, ignore_errors=True)
