#!/usr/bin/env python3
"""Which ways of asking CUPTI late for the driver's launches give them: late_calls.py [STEPS].

Each way runs in a process of its own: matrix products (cuBLAS launches them by the driver's API) and elementwise kernels (by the
runtime's). CUPTI is asked by ctypes, before the first CUDA call or after some steps. The table has the codes of
cuptiActivityEnableDriverApi, the records by kind, and the kernels without a call. Needs torch and libcupti."""
import ctypes
import glob
import json
import os
import subprocess
import sys
import threading

RUNTIME, DRIVER, KERNEL, MEMCPY = 5, 4, 10, 1
DRIVER_API, RUNTIME_API = 1, 2
WORK = ("cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset", "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize",
        "cuStreamWaitEvent", "cuCtxSynchronize")
NOISE = ("cudaGetDevice", "cudaSetDevice", "cudaGetLastError", "cudaPeekAtLastError", "cudaEventQuery", "cudaStreamQuery",
         "cudaStreamIsCapturing", "cudaStreamGetCaptureInfo")
# where it is asked from, when, and what is asked, in order
WAYS = {
    "early, as trace": ("thread", 0, "runtime noise functions"),
    "late, as attach": ("thread", 1, "runtime noise functions"),
    "late, main thread": ("main", 1, "runtime noise functions"),
    "late, no filter of noise": ("thread", 1, "runtime functions"),
    "late, functions first": ("thread", 1, "functions runtime noise"),
    "late, functions twice": ("thread", 1, "runtime noise functions functions"),
    "late, functions + callbacks": ("thread", 1, "runtime noise functions callbacks"),
    "late, callbacks on and off": ("thread", 1, "callbacks nocallbacks runtime noise functions"),
    "late, whole kind": ("thread", 1, "runtime noise driver"),
    "late, kind less the rest": ("thread", 1, "runtime noise driver others"),
    "late, kind on, off, functions": ("thread", 1, "runtime noise driver nodriver functions"),
    "late, two steps on": ("thread", 1, "runtime noise wait functions"),
}


def cupti():
    import nvidia
    found = []
    for base in list(nvidia.__path__) + ["/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"]:
        found += glob.glob(os.path.join(base, "**", "libcupti.so.*"), recursive=True)
    return ctypes.CDLL(sorted(found, key=len)[0], mode=ctypes.RTLD_GLOBAL)


class Asker:
    def __init__(self):
        self.lib = cupti()
        self.counts, self.calls, self.kernels, self.codes = {}, set(), [], {}
        self.buffers = {}
        take = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
        give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        self.take, self.give = take(self.requested), give(self.completed)
        called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
        self.called = called(lambda *_: None)

    def requested(self, buffer, size, records):
        block = ctypes.create_string_buffer((1 << 20) + 16)
        at = (ctypes.addressof(block) + 15) & ~15
        self.buffers[at] = block
        buffer[0], size[0], records[0] = at, 1 << 20, 0

    def completed(self, _context, _stream, buffer, _size, valid):
        record = ctypes.c_void_p()
        while valid and self.lib.cuptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)) == 0:
            words = ctypes.cast(record, ctypes.POINTER(ctypes.c_uint32))
            kind = words[0]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if kind in (RUNTIME, DRIVER):
                self.calls.add(words[8])  # kind cbid start end process thread correlation
            elif kind == KERNEL:
                self.kernels.append(bytes(ctypes.cast(record, ctypes.POINTER(ctypes.c_ubyte * 160)).contents))
        self.buffers.pop(buffer, None)

    def names(self, domain):
        name = ctypes.c_char_p()
        for number in range(1, 1000):
            if self.lib.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0 and name.value:
                yield number, name.value.decode()

    def each(self, what, function, numbers):
        codes = [function(number) for number in numbers]
        self.codes[what] = {str(code): codes.count(code) for code in set(codes)}

    def begin(self):
        handle = ctypes.c_void_p()
        self.codes["subscribe"] = self.lib.cuptiSubscribe(ctypes.byref(handle), self.called, None)
        self.handle = handle
        self.lib.cuptiActivityRegisterCallbacks(self.take, self.give)
        for kind in (KERNEL, MEMCPY):
            self.lib.cuptiActivityEnable(kind)

    def ask(self, words, wait):
        self.begin()
        lib = self.lib
        work = [n for n, name in self.names(DRIVER_API) if name.startswith(WORK)]
        for word in words.split():
            if word == "runtime":
                self.codes[word] = lib.cuptiActivityEnable(RUNTIME)
            elif word == "noise":
                noise = [n for n, name in self.names(RUNTIME_API) if name.startswith(NOISE)]
                self.each(word, lambda n: lib.cuptiActivityEnableRuntimeApi(n, ctypes.c_uint8(0)), noise)
            elif word == "functions":
                self.each(word, lambda n: lib.cuptiActivityEnableDriverApi(n, ctypes.c_uint8(1)), work)
            elif word == "others":
                rest = [n for n, _ in self.names(DRIVER_API) if n not in work]
                self.each(word, lambda n: lib.cuptiActivityEnableDriverApi(n, ctypes.c_uint8(0)), rest)
            elif word in ("callbacks", "nocallbacks"):
                on = int(word == "callbacks")
                self.each(word, lambda n: lib.cuptiEnableCallback(on, self.handle, DRIVER_API, n), work)
            elif word == "driver":
                self.codes[word] = lib.cuptiActivityEnable(DRIVER)
            elif word == "nodriver":
                self.codes[word] = lib.cuptiActivityDisable(DRIVER)
            elif word == "wait":
                wait()

    def end(self):
        self.lib.cuptiActivityFlushAll(1)
        # The correlation id is where most kernels have one of the calls' numbers: its offset differs by version.
        offsets = range(0, 160, 4)
        number = lambda record, at: int.from_bytes(record[at:at + 4], "little")
        best = max(offsets, key=lambda at: len({number(r, at) for r in self.kernels} & self.calls), default=0)
        without = sum(number(r, best) not in self.calls for r in self.kernels)
        return {"codes": self.codes, "runtime": self.counts.get(RUNTIME, 0), "driver": self.counts.get(DRIVER, 0),
                "kernels": len(self.kernels), "without": without}


def one(way, steps):
    where, late, words = WAYS[way]
    asker = Asker()
    going, stepped = threading.Event(), threading.Event()

    def ask():
        asker.ask(words, lambda: (stepped.clear(), stepped.wait(5)))
        going.set()

    if not late:
        ask()
    import torch
    a = torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
    for step in range(steps):
        if late and step == steps // 4:
            if where == "main":
                ask()
            else:
                threading.Thread(target=ask).start()
        for _ in range(20):
            (a @ b).relu_()
        torch.cuda.synchronize()
        stepped.set()
    going.wait(10)
    for _ in range(50):
        (a @ b).relu_()
    torch.cuda.synchronize()
    print(json.dumps(asker.end()))


def main():
    if len(sys.argv) > 2:
        return one(sys.argv[1], int(sys.argv[2]))
    steps = sys.argv[1] if len(sys.argv) > 1 else "60"
    print(f"{'way':32} {'runtime':>8} {'driver':>7} {'kernels':>8} {'no call':>8}  codes")
    for way in WAYS:
        done = subprocess.run([sys.executable, __file__, way, steps], capture_output=True, text=True, timeout=120)
        try:
            it = json.loads(done.stdout.strip().splitlines()[-1])
            codes = {k: v for k, v in it["codes"].items()}
            print(f"{way:32} {it['runtime']:8} {it['driver']:7} {it['kernels']:8} {it['without']:8}  {codes}", flush=True)
        except (IndexError, ValueError):
            print(f"{way:32} failed: {done.returncode} {done.stderr.strip().splitlines()[-1:]}", flush=True)


if __name__ == "__main__":
    main()
