#!/usr/bin/env python3
"""Makes the inputs of the table of cases that no trace of the repository has, each the smallest that asks for its row.

    tests/cases/inputs.py | gzip -9n > tests/cases/inputs.txt.gz

A function makes one input, under its own name; its text says what the program does. A line of the file is a record:
"= NAME SOURCE" begins an input, and the others begin with the letter of what they are (see tests/cases/input.rs).
Times are nanoseconds: how long after the record before it began, and how long it took. Everything is on one device, and
on one thread where no other is named.
"""

import sys

US, MS, S = 1_000, 1_000_000, 1_000_000_000
INPUTS = []


class Made:
    def __init__(self):
        self.lines, self.now, self.source, self.last = [], 0, "traced", 0

    def put(self, *fields):
        self.lines.append(" ".join(str(it) for it in fields))

    def record(self, letter, start, end, *fields):
        """Times count from the record before, so that what repeats is the same line again."""
        self.put(letter, start - self.last, end - start, *fields)
        self.last = start

    def thread(self, number):
        """What follows is of this thread, from 0 on."""
        self.put("t", number)

    def shared(self, size):
        """Blocks of the kernels that follow share so many bytes."""
        self.put("b", size)

    def waits(self, name, **reasons):
        """What the warps of a kernel were seen waiting for, in samples."""
        for reason, samples in reasons.items():
            self.put("w", reason, samples, name)

    def call(self, name, start, end, code=0):
        """A call of the host: what follows was caused by it."""
        self.record("c", start, end, code, name)

    def kernel(self, name, start, end, stream=7, grid=1024, block=256):
        self.record("k", start, end, stream, grid, block, name)

    def copy(self, direction, size, start, end, stream=7, memory="pinned"):
        self.record("m", start, end, stream, direction, size, memory)

    def memset(self, size, start, end, stream=7):
        self.record("s", start, end, stream, size)

    def range(self, name, start, end, kind="nvtx", index=0):
        self.record("r", start, end, kind, index, name)

    def launch(self, name, took=5 * US, length=90 * US, call="cudaLaunchKernel", **shape):
        """A launch that takes so long, and its kernel, which ends before the next launch."""
        self.call(call, self.now, self.now + took)
        self.now += took + 2 * US
        self.kernel(name, self.now, self.now + length, **shape)
        self.now += length + 3 * US

    def op(self, name, length, grid=8):
        """A kernel that is queued ahead: ten nanoseconds from the one before."""
        self.call("cudaLaunchKernel", self.now - 5, self.now)
        self.kernel(name, self.now, self.now + length, grid=grid, block=128)
        self.now += length + 10

    def bring(self, length=300):
        """A copy to the GPU, as `op`."""
        self.call("cudaMemcpyAsync", self.now - 5, self.now)
        self.copy("h2d", 4096, self.now, self.now + length)
        self.now += length + 10

    def step(self, layers=2, slow=1):
        """A training step: a copy, layers forth and back, an optimizer."""
        self.bring(300 * slow)
        for _ in range(layers):
            self.op("gemm", 104 * slow, 64)
            self.op("relu", 20 * slow)
        self.op("loss", 40 * slow, 1)
        for _ in range(layers):
            self.op("gemm_back", 194 * slow, 64)
            self.op("relu_back", 20 * slow)
        self.op("adam", 80 * slow, 32)


def made(function):
    INPUTS.append(function)
    return function


# First use.


def launches(made, slow, took=2 * MS, count=20, kernels=2):
    """Kernels by turns, every 100 us. Launches take 5 us, but for those with these numbers."""
    for i in range(count):
        made.launch("abcdefghijkl"[i % kernels], took if i in slow else 5 * US)


@made
def first_launch(made):
    """The first launch of the second kernel takes 2 ms."""
    launches(made, [1])


def operators(made, count, name="aten::cudnn_convolution", first=S, wait="cudaStreamSynchronize"):
    made.call("cudaLaunchKernel", -300 * US, -297 * US)
    made.kernel("before", -290 * US, -200 * US)
    at = 0
    for i in range(count):
        own = first if i == 0 else 900 * US
        made.range(name, at, at + own + 100 * US, "op")
        launched = at + own
        made.call("cudaLaunchKernel", launched, launched + 3 * US)
        made.kernel("k", launched + 6 * US, launched + 80 * US)
        made.call(wait, launched + 4 * US, launched + 90 * US)
        at += own + 100 * US


@made
def search(made):
    """Two convolutions in which an event is waited for: they try what is fastest. A third one does not."""
    operators(made, 2, first=20 * MS, wait="cudaEventSynchronize")


def few_calls(made, name, times, kernel=50 * MS):
    """Calls of a function before the only kernel."""
    at = -2 * S
    for took in times:
        made.call(name, at, at + took)
        at += took + US
    made.call("cudaLaunchKernel", 0, 3 * US)
    made.kernel("k", 6 * US, 6 * US + kernel)


@made
def frees_that_start_a_library(made):
    """Three frees: 266 ms, 715 ms, 4 us."""
    few_calls(made, "cudaFree", [266 * MS, 715 * MS, 4 * US])


@made
def frees_of_a_few_milliseconds(made):
    """Three frees: 2 ms, 3 ms, 4 us, as the caches of Python code take it."""
    few_calls(made, "cudaFree", [2 * MS, 3 * MS, 4 * US], 5 * MS)


@made
def allocation_between_first_launches(made):
    """Slow first launches, and between them an allocation of 7 ms behind one of 2."""
    made.call("cudaMalloc", 0, 2 * MS)
    made.now = 2 * MS
    made.launch("a", 10 * MS)
    made.call("cudaMalloc", made.now, made.now + 7 * MS)
    made.now += 7 * MS
    made.launch("b", 5 * MS)
    for _ in range(8):
        made.launch("a")


@made
def one_kernel_and_its_copies(made):
    """A copy, a kernel and a copy back in 40 us, most of which is launching."""
    for at, way in [(0, "h2d"), (30 * US, "d2h")]:
        made.call("cudaMemcpyAsync", at, at + 8 * US)
        made.copy(way, 4096, at + 9 * US, at + 10 * US)
    made.call("cudaLaunchKernel", 15 * US, 20 * US)
    made.kernel("k", 22 * US, 25 * US)


@made
def slow_question(made):
    """Eight quick questions and a slow one, between launches of a kernel."""
    for i in range(9):
        took = 7 * MS if i == 3 else 2 * US
        made.call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", made.now, made.now + took)
        made.now += took
        made.launch("a", length=MS)


@made
def question_that_takes_long(made):
    """Nine questions whether work is done, the first of which takes 12 ms, between launches of a kernel."""
    for i in range(10):
        made.launch("a", length=MS)
        took = 12 * MS if i == 0 else 2 * US
        made.call("cudaEventQuery", made.now, made.now + took)
        made.now += took


@made
def library_that_starts(made):
    """A kernel, 80 ms of the CPU with 120 questions for addresses, and the first kernel of a library."""
    for _ in range(4):
        made.launch("a")
    for i in range(120):
        made.call("cuGetProcAddress_v2", made.now + i * US, made.now + i * US + 500)
    made.now += 80 * MS
    for _ in range(4):
        made.launch("gemm")


@made
def library_that_starts_before_work(made):
    """The same with an event and 0.3 s of the program's own work behind the library's start."""
    for _ in range(4):
        made.launch("a")
    for i in range(120):
        made.call("cuGetProcAddress_v2", made.now + i * US, made.now + i * US + 500)
    made.now += 80 * MS
    made.call("cudaEventCreate", made.now, made.now + 5 * US)
    made.now += 300 * MS
    for _ in range(4):
        made.launch("gemm")


@made
def pages_that_are_locked(made):
    """Memory of the host is locked between two kernels, as a loop does: seven times for 0.2 ms, then for 1 ms, 715 ms and 4 us."""
    made.call("cudaLaunchKernel", -3 * S, -3 * S + 3 * US)
    made.kernel("k", -3 * S + 6 * US, -3 * S + MS)
    for i in range(7):
        at = -3 * S + (i + 2) * MS
        made.call("cudaHostRegister", at, at + 200 * US)
    few_calls(made, "cudaHostAlloc", [MS, 715 * MS, 4 * US])


@made
def call_that_opens(made):
    """The first call of all locks memory, for 275 ms. It is the only one of its function."""
    few_calls(made, "cudaHostAlloc", [275 * MS])


@made
def allocation_behind_a_question(made):
    """The driver's version takes 0.2 ms, and the only allocation 275 ms, before anything is launched."""
    made.call("cuDriverGetVersion", -3 * S, -3 * S + 200 * US)
    few_calls(made, "cudaMalloc", [275 * MS])


@made
def launches_that_fail(made):
    """The first launch of each of three kernels takes 2 ms. Those after them fail in 1 us, eight of them."""
    for name in "abc":
        made.launch(name, 200 * US)
    for _ in range(8):
        made.call("cudaLaunchKernel", made.now, made.now + US, 1)
        made.now += 2 * US
    for _ in range(2):
        for name in "abc":
            made.launch(name, 50 * US)


@made
def mostly_first_launches(made):
    """Six kernels, whose first launches take 5 ms each. Five short launches follow."""
    for name in "abcdef":
        made.launch(name, 5 * MS, 2 * US)
    for name in "abcde":
        made.launch(name, 5 * US, 2 * US)


@made
def kernels_launched_once(made):
    """Six kernels, each launched once, in 5 ms."""
    for name in "abcdef":
        made.launch(name, 5 * MS, 100 * US)


@made
def event_later(made):
    """The tenth event that is made takes 0.7 s, long after all first launches."""
    events(made, 9)


def events(made, slow):
    for i in range(20):
        made.kernel("k", made.now, made.now + 90 * US)
        made.now += 91 * US
        took = 700 * MS if i == slow else US
        made.call("cudaEventCreateWithFlags", made.now, made.now + took)
        made.now += took + US
        took = 2 * S if i == 4 else 5 * US
        made.call("cudaLaunchKernel", made.now, made.now + took)
        made.now += took + 2 * US
        made.kernel("k" if i < 4 else "other", made.now, made.now + 10 * US)
        made.now += 11 * US


@made
def batch_that_was_not_ready(made):
    """A copy of 64 MiB to the GPU and eight kernels, 3 s of the CPU, and the same again."""
    for at in [0, 3 * S]:
        made.call("cudaMemcpyAsync", at, at + 3 * MS)
        made.copy("h2d", 64 << 20, at + 10 * US, at + 3 * MS)
        made.now = at + 4 * MS
        for i in range(8):
            made.launch(f"k{i}", 5 * US, MS)


@made
def one_long_gap(made):
    """Nine kernels twice, in another order. Before one of them the CPU is at other work for 0.7 s."""
    for i, name in enumerate("abcdefghigaidbhcef"):
        if i == 13:
            made.range("collect", made.now, made.now + 700 * MS)
            made.now += 700 * MS
        made.launch(name)


@made
def frees_before_the_first_kernel(made):
    """A copy, then frees of 5 us, the second and the fourth of 20 and 30 ms, then the only kernel."""
    at = -60 * MS
    made.copy("h2d", 1000, at - 10 * US, at - 5 * US)
    for took in [5 * US, 20 * MS, 5 * US, 30 * MS, 5 * US, 5 * US]:
        made.call("cudaFree", at, at + took)
        at += took + US
    made.call("cudaLaunchKernel", 0, 5 * US)
    made.kernel("k", 7 * US, 10 * US)
    made.call("cuModuleUnload", 20 * US, 900 * MS)


@made
def copy_that_opens_for_kineto(made):
    """A first copy whose call takes 90 ms, of which it runs for 2 us. The profiler begins later than the process."""
    made.source = "kineto"
    made.call("cudaMemcpyToSymbol", 0, 90 * MS)
    made.copy("h2d", 4096, 90 * MS - 3 * US, 90 * MS - US)
    made.now = 90 * MS + 10 * US
    for _ in range(10):
        made.launch("k", 5 * US, 10 * MS)


@made
def profiler_that_starts(made):
    """Twelve kernels, each launched twice within 5 us, but for the first launch of all: it takes 2 ms."""
    launches(made, [0], 2 * MS, 24, 12)
    made.source = "kineto"


@made
def profiler_of_a_later_step(made):
    """A slow first launch in what the profiler calls step 6."""
    launches(made, [1])
    made.range("ProfilerStep#6", 0, 4 * MS)


def built(made, work, rounds):
    """Three kernels by turns. Before the first launch of each the CPU works, and loads code for 240 us."""
    for i in range(3 * rounds):
        if i < 3:
            made.now += work
            made.call("cuModuleLoadData", made.now, made.now + 240 * US)
            made.now += 240 * US
        else:
            made.now += 30 * US
        made.call("cuLaunchKernel", made.now, made.now + 10 * US)
        made.kernel("abc"[i % 3], made.now + 12 * US, made.now + 17 * US)
        made.now += 17 * US


@made
def kernels_that_are_built(made):
    """The CPU works 0.9 ms before each first launch, of which a quarter loads code."""
    built(made, 880 * US, 2)


@made
def kernels_that_are_built_and_never_launched_again(made):
    """The same, with one launch of each kernel."""
    built(made, 880 * US, 1)


@made
def kernels_that_wait_again(made):
    """The CPU works for 1 ms before each launch, and loads code before the first ones."""
    for i in range(9):
        made.now += 880 * US
        if i < 3:
            made.call("cuModuleLoadData", made.now, made.now + 240 * US)
            made.now += 240 * US
        made.call("cuLaunchKernel", made.now, made.now + 10 * US)
        made.kernel("abc"[i % 3], made.now + 12 * US, made.now + 17 * US)
        made.now += 17 * US


def compiled(made, name, span="", loads=False):
    """A kernel, and 50 ms later another one for the first and only time. A wait for nothing lies between."""
    made.call("cuLaunchKernel", 0, 5 * US)
    made.kernel("first", 7 * US, 10 * US)
    if span:
        made.range(span, 10 * MS, 45 * MS)
    made.call("cuCtxSynchronize", 48 * MS, 48 * MS + 8 * US)
    if loads:
        made.call("cuModuleLoadData", 49 * MS, 49 * MS + 900 * US)
    made.call("cuLaunchKernel", 50 * MS + 5 * US, 50 * MS + 10 * US)
    made.kernel(name, 50 * MS + 12 * US, 51 * MS)


@made
def kernel_of_triton(made):
    """The second kernel has a name that torch.compile gives."""
    compiled(made, "triton_poi_fused_copy_0")


@made
def range_that_compiles(made):
    """A range named like compiling lies before the second kernel."""
    compiled(made, "k", "KernelExecutor::compileFusion")


@made
def kernel_that_is_compiled_in_each_step(made):
    """Eight steps. Before the first kernel of each the CPU is outside CUDA for 400 ms, and then loads code from memory."""
    for _ in range(8):
        made.now += 399 * MS
        made.call("cuModuleLoadData", made.now, made.now + 600 * US)
        made.now += 610 * US
        made.launch("scale", length=2 * MS, call="cuLaunchKernel")
        for name in "abcde":
            made.launch(name, length=2 * MS)
        made.call("cudaStreamSynchronize", made.now, made.now + 5 * US)
        made.now += 10 * US


@made
def range_of_what_was_compiled(made):
    """A range of code that was compiled before lies there."""
    compiled(made, "k", "Torch-Compiled Region")


@made
def wait_for_a_compiler(made):
    """The CPU polls another process, and loads code."""
    compiled(made, "k", "poll", True)


@made
def copy_behind_a_linker(made):
    """A thread waits for others and links what they made, and another one copies a number to the GPU: for what is launched then."""
    made.call("cuLaunchKernel", 0, 5 * US)
    made.kernel("first", 7 * US, 10 * US)
    made.thread(1)
    made.call("cuMemcpyHtoDAsync_v2", 20 * US, 25 * US)
    made.copy("h2d", 4, 27 * US, 28 * US)
    made.thread(0)
    made.range("futex", 10 * MS, 48 * MS)
    made.call("cuLinkComplete", 49 * MS, 49 * MS + 100 * US)
    made.thread(1)
    made.call("cuMemcpyHtoDAsync_v2", 50 * MS, 50 * MS + 5 * US)
    made.copy("h2d", 4, 50 * MS + 7 * US, 50 * MS + 8 * US)
    made.thread(0)
    for i in range(2):
        at = 51 * MS + i * 2 * MS
        made.call("cuLaunchKernel", at, at + 5 * US)
        made.kernel("first", at + 7 * US, at + MS)


@made
def system_call_that_blocks(made):
    """Five calls of the operating system, of which the first blocks for a second, as Nsight Systems has them."""
    operators(made, 5, "recvmsg")
    made.source = "nsys"


# Steps.


@made
def three_steps_of_which_the_first_is_slow(made):
    """Three whole steps, the first of which takes 1.4 times as long."""
    for slow in [14, 10, 10, 10]:
        made.step(4, slow)


@made
def steps_that_warm_up_a_little(made):
    """Ten steps, the first two of which take 5 % longer."""
    for i in range(10):
        made.step(4, 105 if i < 2 else 100)


@made
def fifteen_frames(made):
    """Fifteen such steps: too few to show a rhythm."""
    paced(made, 15)


def paced(made, count):
    for i in range(count):
        made.now = i * 16_666_667
        made.bring(10 * US)
        for name in ["embed", "attend", "norm"]:
            made.op(name, 330 * US)


def marked(made, name, count, kernels=4, kind="nvtx"):
    """Ranges with four kernels each, no two of which are alike."""
    for i in range(count):
        host, gpu = US + i * 100, 10 * US + i * 700
        made.range(name(i), host, host + 90, kind, i)
        for op in range(kernels):
            at = host + 10 * op
            made.call("cudaLaunchKernel", at, at + 5)
            made.kernel(f"k{(i * 31 + op * 17 + i * op) % 97}", gpu + op * 150, gpu + op * 150 + 140)


@made
def two_steps_of_a_profiler(made):
    """A profiler marks two steps."""
    marked(made, lambda i: f"ProfilerStep#{i}", 2)


@made
def one_steady_step_of_three(made):
    """A profiler marks three steps. The GPU waits for most of the first."""
    for i, wait in enumerate([30 * MS, 0, 0]):
        start = made.now
        made.launch("forward", length=4 * MS)
        made.now += wait
        made.launch("backward", length=4 * MS)
        made.range(f"ProfilerStep#{i}", start, made.now, index=i)


@made
def two_ranges(made):
    """Two ranges of one name."""
    marked(made, lambda i: "solve", 2)


@made
def two_iterations(made):
    """Two that are named so."""
    marked(made, lambda i: "iteration", 2)


@made
def ranges_of_a_loader(made):
    """Eight steps of kernels, in ranges of the thread that launches them. Longer ranges of another thread have a copy each."""
    for i in range(8):
        at = i * MS
        made.thread(1)
        made.range(f"batch {i}", at, at + 950 * US)
        made.call("cudaMemcpyAsync", at + 900 * US, at + 905 * US)
        made.copy("h2d", 1 << 20, at + 910 * US, at + 940 * US, 13)
        made.thread(0)
        made.now = at + 200 * US
        made.range("train", made.now, made.now + 600 * US)
        for op in range(6):
            made.launch(f"k{(i * 31 + op * 17 + i * op) % 97}", length=80 * US)


@made
def modules(made):
    """Ten modules of PyTorch's profiler."""
    marked(made, lambda i: f"nn.Module: SwitchTransformerBlock_{i}", 10)


@made
def paths_of_modules(made):
    """Ten modules by their paths."""
    marked(made, lambda i: f"FSDP::pre_forward (blocks.{i}._checkpoint_wrapped_module)", 10)


@made
def steps_in_a_path(made):
    """Ten steps that are numbered behind a dot."""
    marked(made, lambda i: f"epoch1.step.{i}", 10)


@made
def layers(made):
    """Ten layers by that word."""
    marked(made, lambda i: f"decoder layer {i}", 10)


@made
def players(made):
    """Ten turns of a player."""
    marked(made, lambda i: f"player turn {i}", 10)


@made
def ranges_that_overlap(made):
    """Ten ranges, each of which reaches far into the next."""
    for i in range(10):
        made.range(f"request {i}", US + i * 100, US + i * 100 + 180, index=i)
        for op in range(4):
            at = US + i * 100 + 10 * op
            made.call("cudaLaunchKernel", at, at + 5)
            gpu = 10 * US + i * 700 + op * 150
            made.kernel(f"k{(i * 31 + op * 17 + i * op) % 97}", gpu, gpu + 140)


@made
def ranges_beside_other_work(made):
    """Ten ranges hold a quarter of all operations."""
    marked(made, lambda i: "iteration", 10)
    made.now = 20 * US
    for i in range(120):
        made.op(f"other{i * i % 113}", 50)


@made
def ranges_around_half_a_step(made):
    """A range holds seven of the twelve operations of each step."""
    for _ in range(12):
        for op in range(5):
            made.op(f"k{op}", 100)
        start = made.now
        for op in range(7):
            made.op(f"adam{op}", 80)
        made.range("optimizer", start - 6, made.now - 10)


@made
def ranges_by_turns(made):
    """Ranges of one name hold twelve and six kernels by turns."""
    for i in range(12):
        start = made.now
        for op in range([12, 6][i % 2]):
            made.call("cudaLaunchKernel", made.now, made.now + 10)
            made.kernel(f"k{i}_{op}", made.now + 20, made.now + 90)
            made.now += 100
        made.range("aggregate", start, made.now, index=i)


@made
def ranges_of_all_lengths(made):
    """Ranges with 1, 60, 2, 8, 60, 1 and 1 kernels."""
    for i, count in enumerate([1, 60, 2, 8, 60, 1, 1]):
        start = made.now
        for op in range(count):
            made.call("cudaLaunchKernel", made.now, made.now + 10)
            made.kernel(f"k{i}_{op % 7}", made.now + 20, made.now + 90)
            made.now += 100
        made.range(f"phase {i}", start, made.now, index=i)


@made
def ranges_of_variants(made):
    """Five variants of one benchmark, each in a range of one name, with a kernel of its own."""
    for i in range(5):
        start = made.now
        for _ in range(10):
            made.call("cudaLaunchKernel", made.now, made.now + 10)
            made.kernel(f"variant{i}", made.now + 20, made.now + 90)
            made.now += 100
        made.range("Steps", start, made.now)


@made
def ranges_that_only_enqueue(made):
    """Three chunks are enqueued at once: their copies follow each other, and the kernels behind them take three times as long."""
    for i in range(3):
        made.call("cudaMemcpyAsync", i * 10, i * 10 + 2)
        made.copy("h2d", 1 << 28, 100 + i * 11 * MS, 100 + (i + 1) * 11 * MS)
        made.call("cudaLaunchKernel", i * 10 + 3, i * 10 + 5)
        made.kernel("busy", (11 + i * 30) * MS + 200, (41 + i * 30) * MS + 100, stream=8)
        made.range(f"enqueue chunk {i}", i * 10, i * 10 + 6, index=i)


@made
def warm_up_before_steps(made):
    """Four warm-up steps of a forward and a backward pass, then ten forward passes."""

    def one(name):
        start = made.now
        for op in range(6):
            made.call("cudaLaunchKernel", made.now, made.now + 10)
            made.kernel(f"k{start}_{op}", made.now + 20, made.now + 90)
            made.now += 100
        made.range(name, start, made.now)
        return start

    for i in range(4):
        start = one("Forward")
        one("Backward")
        made.range(f"Warm-up Step {i}", start, made.now)
    for _ in range(10):
        one("Forward")


@made
def polls_of_the_system(made):
    """A poll of the operating system every 700 ns, as Nsight Systems has it."""
    marked(made, lambda i: "poll", 10, kind="op")
    made.source = "nsys"


@made
def pass_over_layers(made):
    """One pass over ten layers of thirteen kernels each, which repeat."""
    for i in range(10):
        start = made.now - 10
        for op in range(13):
            made.op(f"k{op}", 100)
        made.range(f"nn.Module: Block_{i}", start, made.now - 10, index=i)


@made
def pieces_that_copy_more_and_more(made):
    """Twelve pieces of two copies and a kernel, each with more bytes than the one before."""
    for i in range(12):
        for way in ["h2d", "d2h"]:
            made.call("cudaMemcpyAsync", made.now - 5, made.now)
            made.copy(way, 4096 * (i + 1), made.now, made.now + 300)
            made.now += 310
        made.op("work", 4 * US)


@made
def sweep(made):
    """Two repeats of a variant at each of two points."""
    for i, index in enumerate([0, 1, 0, 1]):
        at = i * US
        made.range("a", at, at + 900, "repeat", index)
        made.kernel("k", at + 100, at + 200 + index)


@made
def pages_of_managed_memory(made):
    """A kernel that touches managed memory, which the driver brings page by page in the same few sizes."""
    made.kernel("add", 0, 500 * US)
    for i in range(100):
        at = US + i * 40 * US
        made.put("n")
        made.copy("h2d", 4 << 10, at, at + 2 * US, stream=4294967295)
        made.copy("h2d", 60 << 10, at + 5 * US, at + 9 * US, stream=4294967295)


@made
def layers_between_other_work(made):
    """A forward pass: many operations, four layers of five, many others."""
    for i in range(30):
        made.op(f"prepare{i}", 20)
    for _ in range(4):
        for name in ["qkv", "attend", "project", "up", "down"]:
            made.op(name, 400)
    for i in range(20):
        made.op(f"finish{i}", 20)


@made
def many_steps_behind_other_work(made):
    """Forty operations that never come again, then nine steps of ten."""
    for i in range(40):
        made.op(f"prepare{i}", 20)
    for _ in range(9):
        for op in range(10):
            made.op(f"k{op}", 100)


@made
def many_pieces_in_little_of_all(made):
    """Two hundred operations that never come again, then twelve steps of ten."""
    for i in range(200):
        made.op(f"prepare{i}", 10)
    for _ in range(12):
        for op in range(10):
            made.op(f"k{op}", 100)


@made
def five_equal_kernels(made):
    """Two kernels by turns, five times."""
    for _ in range(5):
        made.op("a", 400 * US)
        made.op("b", 400 * US)


@made
def other_pieces_between(made):
    """Nine steps of ten operations. Between the first of them are six pieces of twelve that never come again."""
    for i in range(9):
        made.op("begin", 500)
        for op in range(9):
            made.op(f"k{op}", 500)
        if i < 6:
            made.op("begin", 500)
            for op in range(11):
                made.op(f"odd{i}_{op}", 20)


@made
def steps_of_which_two_are_equal(made):
    """Twelve steps of ten operations. One operation is another in each, but for two of them."""
    for i in range(12):
        for op in range(9):
            made.op(f"k{op}", 100)
        made.op(f"other{max(i, 1)}", 100)


@made
def fed_steps_and_a_line_of_log(made):
    """Thirty steps that bring their data, and behind every third a log line."""
    for i in range(30):
        made.step(1)
        if i % 3 == 2:
            made.op("sum", 15)
            made.op("print", 15)


@made
def steps_of_two_threads_and_a_line_of_log(made):
    """Four times twenty passes, forth by one thread and back by another; before each twenty a log line."""
    for i in range(80):
        if i % 20 == 0:
            made.op("print", 15)
        for number, name in (0, "forth"), (1, "back"), (0, "adam"):
            made.thread(number)
            for op in range(8):
                made.op(f"{name}{op}", 2 * US)


@made
def one_operation_between_waits(made):
    """One kernel a thousand times, launched ahead. After each hundred the CPU waits."""
    for i in range(1000):
        made.op("k", 2 * US)
        if i % 100 == 99:
            made.call("cudaStreamSynchronize", made.now, made.now + 20 * US)
            made.now += 30 * US


@made
def every_tenth_step_does_more(made):
    """Sixty steps. Each tenth does twice as many other operations, which take forty times as long."""
    for i in range(60):
        made.step(2)
        if i % 10 == 3:
            for _ in range(24):
                made.op("question", 4 * US, 512)


@made
def odd_steps_between(made):
    """Four pieces of one kind and one of another, twelve times. Each brings data."""
    for _ in range(12):
        for _ in range(4):
            made.bring()
            for op in range(8):
                made.op(f"k{op}", 50)
        made.bring()
        for op in range(6):
            made.op(f"odd{op}", 50)


@made
def loops_that_follow_each_other(made):
    """Six of seven operations stay the same. The seventh, which takes most, is another in each third."""
    for i in range(42):
        for op in range(6):
            made.op(f"k{op}", 100)
        made.op(["near", "far", "other"][i // 14], 2000)


@made
def copies_behind_the_work(made):
    """Between two kernels fourteen copies of 10 us with a short kernel each, which take a thousandth of those together."""
    made.op("all", 100 * US, 64)
    for _ in range(14):
        made.bring(10 * US)
        made.op("check", 10)
    made.op("all", 100 * US, 64)


@made
def steps_that_wait_at_times(made):
    """Thirty times the same twenty operations; behind every second time of three a wait, behind every third a longer one."""
    for i in range(30):
        for op in range(20):
            made.op(f"k{op}", 100, 64)
        made.now += [0, 30, 90][i % 3] * US


@made
def pieces_cut_at_random(made):
    """Thirty steps that cut eight pictures each, of which some are turned: never the same ones."""
    for i in range(30):
        for picture in range(8):
            made.op("cut", 100)
            if (i * i + 3) * 2654435761 >> 13 + picture & 1 or picture == 1:
                made.op("turn", 100)
        for name in ["stack", "forth", "back", "learn"]:
            made.op(name, 300)


@made
def pieces_of_all_lengths(made):
    """Three operations, and behind them no pause, one of 2 us and one of 38 us by turns."""
    for i in range(30):
        for name, length in [("embed", 100), ("attend", 200), ("norm", 300)]:
            made.op(name, length, 64)
        made.now += [0, 1, 19][i % 3] * 2 * US


@made
def one_operation_again_and_again(made):
    """One kernel thirty times, launched ahead."""
    for i in range(30):
        made.call("cudaLaunchKernel", i * 5 * US, i * 5 * US + 4 * US)
        made.kernel("k", i * 100 * US + 10 * US, (i + 1) * 100 * US + 9 * US)


@made
def nine_steps_of_half_the_work(made):
    """Nine steps take most of the time, and half of the time of kernels lies before them."""
    made.op("load", 10 * US)
    for _ in range(9):
        made.step(2)
        made.now += 4 * US


@made
def layers_behind_a_prompt(made):
    """Twelve layers of a token, behind a prompt that takes most of the time of kernels."""
    made.op("prompt", 50 * US)
    for _ in range(12):
        made.step(2)


@made
def six_steps_behind_a_long_pause(made):
    """Six steps of some 1 us behind a pause of 1 ms: too short to be what the program is about."""
    made.op("load", 100)
    made.now += MS
    for _ in range(6):
        made.step(2)


@made
def five_steps_behind_some_work(made):
    """Behind a pause five steps of 1.2 ms each, which hold 87 % of the time of kernels."""
    made.op("load", 600 * US)
    made.now += 60 * MS
    for _ in range(5):
        made.step(2, 1000)


@made
def one_operation_behind_work(made):
    """One kernel thirty times, each behind 60 us of the CPU's own work."""
    for _ in range(30):
        made.now += 60 * US
        made.launch("k")


@made
def two_steps_that_save(made):
    """Twenty steps that a range counts. Two of them also pack and bring back what is to be saved."""
    for i in range(21):
        start = made.now
        for _ in range(4):
            made.launch("gemm")
        if i in (7, 12):
            for _ in range(9):
                made.launch("pack")
        made.range(f"step {i}", start, made.now)


@made
def steps_of_two_sizes(made):
    """Twenty steps that a range counts: every third is of three times as much data."""
    for i in range(21):
        start = made.now
        for _ in range(4):
            made.launch("gemm", length=(270 if i % 3 == 1 else 90) * US)
        made.range(f"step {i}", start, made.now)


@made
def steps_of_two_sizes_and_one_length(made):
    """Twenty steps that a range counts: every third is of three times as much data. The CPU begins one each 2 ms."""
    for i in range(21):
        start = made.now = i * 2 * MS
        for _ in range(4):
            made.launch("gemm", length=(270 if i % 3 == 1 else 90) * US)
        made.range(f"step {i}", start, made.now)


@made
def steps_that_wait_by_turns(made):
    """Twenty steps that a range counts. In every third the CPU is at work for 2 ms."""
    for i in range(21):
        start = made.now
        made.now += 2 * MS if i % 3 == 1 else 0
        for _ in range(4):
            made.launch("gemm")
        made.range(f"step {i}", start, made.now)


@made
def layers_in_one_range(made):
    """Twenty layers fill one forward pass, which a range marks."""
    made.now = 10
    for _ in range(20):
        for name, length in [("attention", 300), ("norm", 40), ("mlp", 500)]:
            made.op(name, length, 64)
    made.range("forward", 0, made.now)


@made
def layers_of_two_passes(made):
    """Two forward passes of twelve layers. A range marks the second one."""
    made.now = 10
    for of in ["warm", "measurement"]:
        start = made.now
        made.op("embedding", 70, 8)
        for _ in range(12):
            for name, length in [("attention", 300), ("norm", 40), ("mlp", 500)]:
                made.op(name, length, 64)
        made.op("head", 90, 8)
        if of == "measurement":
            made.range(of, start, made.now)


@made
def rounds_behind_a_model(made):
    """Six batches, each of eight kernels of a model and forty rounds for what it found."""
    made.now = 10
    for _ in range(6):
        for _ in range(8):
            made.op("attention", 9_000, 64)
        for _ in range(40):
            for name, length in [("crop", 60), ("threshold", 50), ("box", 70)]:
                made.op(name, length, 8)


@made
def fed_steps_in_one_range(made):
    """Twenty steps, each with its input, in one range around the loop."""
    made.now = 10
    for _ in range(20):
        made.step(2)
    made.range("forward", 0, made.now)


@made
def layers_beside_an_op_that_is_done_once(made):
    """Twenty layers, and one embedding before them."""
    made.range("aten::embedding", 0, 5, "op")
    made.now = 10
    for _ in range(20):
        for name, length in [("attention", 300), ("norm", 40), ("mlp", 500)]:
            made.op(name, length, 64)


# Copies.


@made
def copies_before_all_work(made):
    """A pageable copy of 8 MiB before the first of eight kernels of 1 ms."""
    made.call("cudaMemcpyAsync", 0, 800 * US)
    made.copy("h2d", 8 << 20, 10 * US, 800 * US, memory="pageable")
    made.now = MS
    for i in range(8):
        made.launch(f"k{i}", 5 * US, MS)


@made
def batch_of_a_loader(made):
    """A pageable copy of 8 MiB behind PyTorch's loader, and before the first of eight kernels of 1 ms."""
    made.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", -5 * MS, -MS)
    made.range("aten::to", 0, 2 * MS, "op")
    made.call("cudaMemcpyAsync", 0, 2 * MS)
    made.copy("h2d", 8 << 20, 10 * US, 2 * MS, memory="pageable")
    made.now = 2 * MS + 50 * US
    for i in range(8):
        made.launch(f"k{i}", 5 * US, MS)


# Cold starts.


@made
def cold_start_of_one_percent(made):
    """A first launch of 0.2 ms in 20 ms of work."""
    made.launch("k", 5 * US, 2 * MS)
    made.launch("other", 200 * US, 2 * MS)
    for _ in range(8):
        made.launch("k", 5 * US, 2 * MS)


@made
def cold_start_of_three_percent(made):
    """A first launch of 0.6 ms, in which the GPU is idle, in 20 ms of work."""
    made.launch("k", 5 * US, 2 * MS)
    made.launch("other", 600 * US, 2 * MS)
    for _ in range(8):
        made.launch("k", 5 * US, 2 * MS)


@made
def loads_behind_the_work(made):
    """Code that is loaded behind the last kernel."""
    launches(made, [], count=6, kernels=6)
    made.call("cuModuleLoadData", made.now + MS, made.now + 3 * MS)


@made
def loads_that_wait_for_kernels(made):
    """Code is loaded while a kernel of 50 ms runs that was launched before, and the call returns behind that."""
    launches(made, [], count=6, kernels=6)
    for i in range(4):
        made.call("cudaLaunchKernel", made.now, made.now + 5 * US)
        made.kernel(f"k{i}", made.now + 10 * US, made.now + 50 * MS)
        made.call("cuModuleLoadData", made.now + 100 * US, made.now + 50 * MS + 200 * US)
        made.now += 50 * MS + 250 * US


@made
def copy_behind_a_pools_memory(made):
    """Memory out of a pool, and a first copy of 14 ms behind it."""
    made.call("cuMemAllocFromPoolAsync", made.now, made.now + 10 * US)
    made.call("cuMemcpyHtoDAsync_v2", made.now + 20 * US, made.now + 14 * MS)
    made.copy("h2d", 2_356, made.now + 14 * MS - 10 * US, made.now + 14 * MS - 8 * US, memory="pageable")
    made.now += 14 * MS
    launches(made, [], count=20, kernels=2)


# Syncs.


def batches_that_are_waited_for(made, count, kernel, apart=3 * US):
    """Kernels that are waited for, with so long from the end of one to the start of the next."""
    for i in range(count):
        at = i * (kernel + apart)
        made.call("cudaLaunchKernel", at - 1900, at)
        made.kernel("k", at, at + kernel)
        made.call("cudaStreamSynchronize", at + 100, at + kernel + apart // 3)


@made
def five_large_batches(made):
    """Five kernels of 8 us: four waits that cost 23 % of the time."""
    batches_that_are_waited_for(made, 5, 8 * US)


@made
def three_large_batches(made):
    """Three kernels of 80 us: the two waits are the ends of two parts."""
    batches_that_are_waited_for(made, 3, 80 * US, 30 * US)


@made
def five_batches_that_cost_little(made):
    """Five kernels of 60 us: four waits that cost 4 % of the time."""
    batches_that_are_waited_for(made, 5, 60 * US)


def turns(made, takes, kernel, reads):
    """Twenty kernels. After each its sync returns late, the CPU reads for a while, and launches the next."""
    made.call(takes, -50 * US, -40 * US)
    for i in range(20):
        at = i * (kernel + 20 * US + reads)
        made.call("cudaLaunchKernel", at, at + 3 * US)
        made.kernel("k", at + 5 * US, at + 5 * US + kernel)
        made.call("cudaDeviceSynchronize", at + 4 * US, at + kernel + 15 * US)


@made
def managed_memory_decides(made):
    """Short kernels are waited for, of a program with managed memory."""
    turns(made, "cudaMallocManaged", 20 * US, 0)


@made
def long_work_behind_waits(made):
    """The CPU works for 5 ms behind each wait for a kernel of 6."""
    turns(made, "cudaMalloc", 6 * MS, 5 * MS)


@made
def optimizer_of_the_cpu(made):
    """Slopes are copied back, an optimizer on the CPU works on them, and what it makes is copied forth."""
    for _ in range(10):
        at = made.now
        made.call("cudaLaunchKernel", at, at + 5 * US)
        made.kernel("k", at + 8 * US, at + 2008 * US)
        made.call("cudaMemcpyAsync", at + 6 * US, at + 10 * US)
        made.copy("d2h", 16 << 20, at + 2010 * US, at + 3010 * US)
        made.call("cudaStreamSynchronize", at + 11 * US, at + 3012 * US)
        at += 3012 * US
        made.range("DeepSpeedCPUAdam.step", at + 2 * US, at + 3002 * US)
        made.call("cudaMemcpyAsync", at + 3010 * US, at + 3015 * US)
        made.copy("h2d", 16 << 20, at + 3020 * US, at + 4020 * US)
        made.now = at + 4024 * US


@made
def results_that_are_read(made):
    """Iterations copy 8 MiB back, wait for it, and work on it for 0.5 ms."""
    for _ in range(20):
        at = made.now
        made.call("cudaLaunchKernel", at, at + 5 * US)
        made.kernel("k", at + 8 * US, at + 108 * US)
        made.call("cudaStreamSynchronize", at + 6 * US, at + 110 * US)
        at += 110 * US
        made.call("cudaMemcpyAsync", at + 2 * US, at + 6 * US)
        made.copy("d2h", 8 << 20, at + 10 * US, at + 160 * US)
        made.call("cudaStreamSynchronize", at + 7 * US, at + 162 * US)
        made.now = at + 662 * US


def exchanges(made, own):
    """Forty rounds of a kernel, a copy back, an exchange by MPI, so much work of the CPU, and a copy up."""
    for i in range(40):
        at = i * (61 * US + own)
        made.call("cudaLaunchKernel", at, at + 3 * US)
        made.kernel("stencil", at + 5 * US, at + 25 * US)
        made.call("cudaMemcpyAsync", at + 10 * US, at + 13 * US)
        made.copy("d2h", 8192, at + 26 * US, at + 28 * US)
        made.call("cudaStreamSynchronize", at + 14 * US, at + 30 * US)
        made.range("MPI_Sendrecv", at + 31 * US, at + 51 * US)
        at += own
        made.call("cudaMemcpyAsync", at + 52 * US, at + 55 * US)
        made.copy("h2d", 8192, at + 56 * US, at + 58 * US)
        made.call("cudaStreamSynchronize", at + 56 * US, at + 60 * US)


@made
def exchange_by_mpi(made):
    """What is copied back goes to MPI, and what comes from it up at once."""
    exchanges(made, 0)


@made
def exchange_that_the_cpu_works_on(made):
    """The same with 120 us of the CPU behind MPI."""
    exchanges(made, 120 * US)


@made
def syncs_before_staged_copies(made):
    """Twenty rounds: a kernel, a sync, 95 us later a copy of 128 KB to pageable memory, and 100 us of the CPU."""
    for i in range(20):
        at = i * 460 * US
        made.call("cudaLaunchKernel", at, at + 5 * US)
        made.kernel("k", at + 10 * US, at + 200 * US)
        made.call("cudaDeviceSynchronize", at + 6 * US, at + 205 * US)
        made.call("cudaMemcpy", at + 300 * US, at + 360 * US)
        made.copy("d2h", 1 << 17, at + 320 * US, at + 350 * US, memory="pageable")


@made
def results_that_are_staged(made):
    """Results of 4 MiB in pageable memory, each fetched by a call that waits."""
    for i in range(20):
        at = i * MS
        made.call("cudaLaunchKernel", at, at + 5 * US)
        made.kernel("k", at + 8 * US, at + 208 * US)
        made.call("cudaMemcpy", at + 10 * US, at + 900 * US)
        made.copy("d2h", 4 << 20, at + 210 * US, at + 890 * US, memory="pageable")


def values(made, operator):
    """A loop in which a value of four bytes comes back each time."""
    for i in range(20):
        at = i * 60 * US
        made.call("cudaLaunchKernel", at, at + 2 * US)
        made.kernel("at::native::reduce", at + 3 * US, at + 9 * US)
        made.call("cudaMemcpyAsync", at + 3 * US, at + 13 * US)
        made.copy("d2h", 4, at + 15 * US, at + 16 * US)
        made.call("cudaStreamSynchronize", at + 13500, at + 17500)
        made.range(operator, at + 2500, at + 18 * US, "op")


@made
def value_that_decides(made):
    """It says how many elements are left."""
    values(made, "aten::nonzero")


@made
def value_that_is_printed(made):
    """It is what `.item()` of PyTorch brings."""
    values(made, "aten::_local_scalar_dense")


@made
def graph_of_each_request(made):
    """Thirty times an input of 300 bytes, a graph of two kernels, and its result of 192 bytes, which the CPU waits for."""
    for i in range(30):
        at = i * 60 * US
        for _ in range(2):
            made.call("cudaMemcpyAsync", at, at + US)
            made.copy("h2d", 300, at + 2 * US, at + 3 * US)
            at += US
        made.call("cudaGraphLaunch", at, at + 2 * US)
        for end in [8, 12]:
            made.kernel("layer", at + (end - 4) * US, at + end * US)
        made.call("cudaMemcpyAsync", at + 3 * US, at + 4 * US)
        made.copy("d2h", 192, at + 13 * US, at + 14 * US)
        made.call("cudaEventSynchronize", at + 5 * US, at + 17 * US)


@made
def loop_over_one_tensor(made):
    """Twelve steps that each multiply and add 40 times to one tensor."""
    for i in range(12 * 80):
        at = 12 * US * i
        made.call("cudaLaunchKernel", at, at + 5 * US)
        name = "mul add".split()[i % 2]
        made.kernel(f"at::native::elementwise_kernel<{name}>", at + 7 * US, at + 9 * US)


def reads(made, pieces, kernels):
    """Twelve steps of so many pieces: short kernels, and a value that comes back behind them."""
    at = 0
    for i in range(12 * pieces):
        for k in range(kernels):
            made.call("cudaLaunchKernel", at, at + 5 * US)
            made.kernel(f"piece_{i % pieces}_{'abcdefgh'[k % 8]}", at + 7 * US, at + 9 * US)
            at += 10 * US
        made.call("cudaMemcpyAsync", at, at + 5 * US)
        made.copy("d2h", 4, at + 37 * US, at + 38 * US)
        made.call("cudaStreamSynchronize", at + 6 * US, at + 40 * US)
        at += 42 * US


@made
def steps_that_read_at_their_end(made):
    """A graph holds the twelve kernels of a step, behind which a value comes back."""
    reads(made, 1, 12)


@made
def reads_between_long_pieces(made):
    """A graph holds each 40 kernels between values that come back."""
    reads(made, 4, 40)


# Optimizers.


def optimizer_kernels(made, kernels, filled=0):
    """Twenty steps of PyTorch: a product, kernels of an optimizer's step, and a gradient that is filled for so long."""
    at = 0
    for _ in range(20):
        made.call("cudaLaunchKernel", at, at + 5 * US)
        made.kernel("void at::native::embedding_backward_kernel<float>" if filled else "gemm", at + 8 * US, at + 108 * US)
        if filled:
            made.call("cudaLaunchKernel", at + 6 * US, at + 9 * US)
            made.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", at + 109 * US, at + 109 * US + filled)
        begin = at + 110 * US + filled
        for name in kernels:
            made.call("cudaLaunchKernel", at + 10 * US, at + 13 * US)
            made.kernel(f"void at::native::multi_tensor_apply_kernel<{name}>", begin, begin + 400 * US)
            begin += 401 * US
        made.range("Optimizer.step#AdamW.step", at + 9500, at + 14 * US, "op")
        at = begin + US


@made
def optimizer_of_a_model_with_a_table(made):
    """Its gradient is filled in 10 us, and the optimizer takes 400: most parameters are others'."""
    optimizer_kernels(made, ["FusedAdamMathFunctor"], 10 * US)


@made
def optimizer_of_two_kernels(made):
    """The optimizer's step is two kernels, each over all parameters."""
    optimizer_kernels(made, ["Mul", "Add"])


# Kernels that leave much of the GPU empty.


def kernels_of(made, name, blocks, length, streams=1, count=8):
    made.put("d", 132, 3)
    for i in range(count):
        at = i // streams * length
        made.kernel(name, at, at + length, stream=i % streams, grid=blocks)


@made
def kernels_of_few_blocks(made):
    """Eight kernels of 33 blocks for 132 SMs."""
    kernels_of(made, "reduce", 33, 100 * US)


@made
def short_kernels_of_few_blocks(made):
    """Eight such kernels of 30 us."""
    kernels_of(made, "reduce", 33, 30 * US)


@made
def very_short_kernels_of_few_blocks(made):
    """Twenty such kernels of 4 us: a matter of launching."""
    kernels_of(made, "reduce", 33, 4 * US, count=20)


@made
def short_kernels_of_one_block(made):
    """Kernels of one block for 4 us each take 15 % of kernel time."""
    for i in range(24):
        at = i * 28 * US
        made.kernel("gemm", at, at + 23 * US)
        made.kernel("last", at + 23 * US, at + 27 * US, grid=1)


@made
def few_kernels_of_few_blocks(made):
    """One such kernel of 100 us in 2 ms."""
    kernels_of(made, "reduce", 33, 100 * US, count=1)
    for i in range(1, 20):
        made.kernel("gemm", i * 100 * US, (i + 1) * 100 * US)


@made
def long_kernel_of_one_block(made):
    """One kernel of 200 us with one block in 4 ms."""
    kernels_of(made, "create", 1, 200 * US, count=1)
    for i in range(1, 20):
        made.kernel("gemm", i * 200 * US, (i + 1) * 200 * US)


@made
def kernels_beside_each_other(made):
    """Four such kernels at once fill the GPU."""
    kernels_of(made, "reduce", 33, 100 * US, 4)


@made
def collectives_of_few_blocks(made):
    """A collective takes few SMs."""
    kernels_of(made, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 33, 100 * US)


def collectives(made, count, long, operator):
    """So many, each behind another product of 10 us, of which these take 4 ms and the others 14 us."""
    for i in range(count):
        at = made.now
        made.launch(f"gemm{i % 5}", 5 * US, 10 * US)
        made.launch("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5 * US, 4 * MS if i in long else 14 * US)
        made.range(operator, at, made.now - US, "op")


@made
def layouts_that_take_little(made):
    """A convolution of 1 ms, and 40 us in which its input is turned around."""
    for i in range(10):
        made.op("void cudnn::ops::nchwToNhwcKernel<float>", 40 * US, grid=1024)
        made.op("convolve", MS, grid=1024)


@made
def exchange_that_waits(made):
    """Ten exchanges of 1 ms between products of 2 ms in training, one of which takes 6 ms."""
    for i in range(10):
        at = made.now
        made.launch(f"gemm{i % 5}", 5 * US, 2 * MS)
        made.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 5 * US, 6 * MS if i == 4 else MS)
        made.range("MmBackward0", at, made.now - US, "op")


@made
def collectives_of_which_two_wait(made):
    """Two of five collectives take 4 ms, the others 14 us."""
    collectives(made, 5, [0, 3], "aten::mm")


@made
def collectives_of_inference(made):
    """Twelve collectives between products of a program of PyTorch without a backward pass."""
    collectives(made, 12, [], "aten::mm")


@made
def kernel_that_does_nothing(made):
    """A kernel without parameters."""
    kernels_of(made, "emptyKernel()", 1, 169 * US, count=1)


@made
def kernels_that_wait_for_pages(made):
    """Kernels of 33 blocks of a program with managed memory."""
    kernels_of(made, "reduce", 33, 100 * US)
    made.copy("d2h", 4 << 10, 900 * US, 902 * US, stream=4294967295, memory="managed")


@made
def kernel_that_works_between_pages(made):
    """A kernel of 10 ms for which a page comes every 1 ms."""
    made.kernel("add", 0, 10 * MS, grid=1)
    for i in range(9):
        at = 100 * US + i * MS
        made.copy("h2d", 64 << 10, at, at + 6 * US, stream=4294967295, memory="managed")


@made
def pages_behind_other_work(made):
    """The CPU works for 30 ms, and a kernel follows. Pages of managed memory move behind it."""
    made.launch("a", length=MS)
    made.call("cudaDeviceSynchronize", made.now, made.now + 2 * US)
    made.now += 30 * MS
    made.launch("b", length=10 * MS)
    for i in range(4):
        made.put("n")
        made.copy("d2h", 4 << 10, made.now + i * 10 * US, made.now + i * 10 * US + 5 * US, stream=4294967295, memory="managed")


@made
def doubles_of_any_grid(made):
    """A kernel in double takes 67 us with 5 to 120 blocks, on a card of 7.5 with 40 SMs."""
    made.put("d", 40, 3, "7.5")
    for blocks in [5, 11, 93, 120] * 4:
        made.launch("solve(double*)", length=67 * US, grid=blocks, block=32)


@made
def kernel_that_waits_for_two_pages(made):
    """A kernel of 0.4 ms that touches 64 KiB of managed memory: two pages come 0.3 ms after it began."""
    made.kernel("add", 0, 400 * US, grid=16)
    made.copy("h2d", 4 << 10, 300 * US, 303 * US, stream=4294967295, memory="managed")
    made.copy("h2d", 60 << 10, 303 * US, 309 * US, stream=4294967295, memory="managed")


@made
def kernels_of_twice_the_blocks(made):
    """Kernels of 33 and 66 blocks by turns, which take as long."""
    made.put("d", 132, 3)
    for i in range(8):
        made.kernel("reduce", i * 100 * US, (i + 1) * 100 * US, grid=[33, 66][i % 2])


@made
def one_launch_far_too_long(made):
    """Three equal kernels of 10 blocks, the first of which takes 2 ms where the others take 10 us, before one of 3 ms."""
    made.put("d", 132, 3)
    made.kernel("few", 0, 2 * MS, grid=10)
    made.kernel("few", 2 * MS, 2 * MS + 10 * US, grid=10)
    made.kernel("few", 2 * MS + 10 * US, 2 * MS + 20 * US, grid=10)
    made.kernel("many", 2 * MS + 20 * US, 5 * MS, grid=1320)


# Copies and kernels one after the other.


@made
def overlapped_a_little(made):
    """Eight batches of a copy and a kernel of 290 us each, of which 100 us run beside each other."""
    for i in range(8):
        at = i * 480 * US
        made.copy("h2d", 15_000_000, at, at + 290 * US, stream=i)
        made.kernel("k", at + 300 * US, at + 590 * US, stream=i)


@made
def mostly_copies(made):
    """Ten copies of 100 us, and kernels of 2 us between them."""
    for i in range(10):
        at = i * 102 * US
        made.copy("h2d", 4 << 20, at, at + 100 * US)
        made.kernel("k", at + 100 * US, at + 102 * US)


@made
def overlap_of_eight_percent(made):
    """Batches in which a copy takes 8 % of the time, and the kernel the rest."""
    for i in range(8):
        at = i * 500 * US
        made.copy("h2d", 2_000_000, at, at + 40 * US)
        made.kernel("k", at + 40 * US, at + 500 * US)


@made
def one_copy_engine(made):
    """Copies up and down by turns on a GPU with a single copy engine."""
    made.put("d", 0, 1)
    for i in range(16):
        at = i * 100 * US
        made.copy(["h2d", "d2h"][i % 2], 4 << 20, at, at + 95 * US, stream=1 + i % 2)


@made
def one_batch(made):
    """An upload, twenty kernels over it, and the way back."""
    made.call("cudaMemcpy", 0, MS)
    made.copy("h2d", 32 << 20, 0, MS)
    for i in range(20):
        at = MS + i * 100 * US
        made.call("cudaLaunchKernel", MS + i * 5 * US, MS + i * 5 * US + 4 * US)
        made.kernel("sort", at + 9 * US, at + 99 * US)
    made.call("cudaMemcpy", 2900 * US, 4 * MS)
    made.copy("d2h", 32 << 20, 3 * MS, 4 * MS)


@made
def one_graph_again_and_again(made):
    """A copy, then a graph with one kernel, eight times."""
    for i in range(8):
        at = i * 600 * US
        made.call("cudaMemcpyAsync", at - 90 * US, at - 85 * US)
        made.copy("h2d", 15_000_000, at, at + 290 * US)
        made.call("cudaGraphLaunch", at - 80 * US, at - 75 * US)
        made.kernel("k", at + 300 * US, at + 590 * US)


@made
def directions_that_are_queued_ahead(made):
    """Copies up and down on a stream each, all called at first: the driver keeps them apart."""
    for i in range(16):
        at, call = MS + i * 100 * US, i * 3 * US
        made.call("cudaMemcpyAsync", call, call + 2 * US)
        made.copy(["h2d", "d2h"][i % 2], 4 << 20, at, at + 95 * US, stream=1 + i % 2)


# Allocations.


def allocations(made, kernels, first=5 * US, frees=False, took=30 * US):
    """Kernels of 20 us with an allocation before each."""
    for i in range(24):
        at = made.now
        made.call("cudaMalloc", at, at + took)
        launch = first if i == 0 else 5 * US
        at += took + 10 * US
        made.call("cudaLaunchKernel", at, at + launch)
        at += launch + 5 * US
        made.kernel(f"k{i % kernels}", at, at + 20 * US)
        if frees:
            made.call("cudaFree", at + 22 * US, at + 25 * US)
        made.now = at + 30 * US


@made
def allocations_of_kernels_that_run_once(made):
    """24 kernels, each of which runs once, with an allocation before it."""
    allocations(made, 24)


@made
def cache_of_a_cold_program(made):
    """One kernel 24 times, with an allocation before each. The first launch takes 2 ms, and nothing is given back."""
    allocations(made, 1, 2 * MS)


@made
def cache_that_is_full_early(made):
    """Sixty kernels, an allocation of 60 us before each of the first thirty. Nothing is given back."""
    for i in range(60):
        at = i * 100 * US
        if i < 30:
            made.call("cudaMalloc", at, at + 60 * US)
        made.call("cudaLaunchKernel", at + 61 * US, at + 64 * US)
        made.kernel("gemm", at + 66 * US, at + 96 * US)


@made
def frees_that_are_slow_now_and_then(made):
    """Forty kernels with a free of 2 us before each; every fourth takes 300 us. The first launch of another kernel takes 2 ms at the end."""
    for i in range(40):
        made.call("cudaFree", made.now, made.now + (300 if i % 4 == 3 else 2) * US)
        made.now += (301 if i % 4 == 3 else 3) * US
        made.launch("scan")
    made.launch("last", 2 * MS)
    made.launch("last")


# A host at other work.


def batches_with_work(made, names, work, pause=50 * MS, kernel=MS, kernels=True):
    """Kernels with a pause before each, in which the CPU is at work."""
    for i, name in enumerate(names):
        at = i * (pause + kernel)
        if work:
            made.range(work, at - pause + 10 * US, at, "op")
        if kernels:
            made.call("cudaLaunchKernel", at, at + 3 * US)
            made.kernel(name, at + 4 * US, at + kernel)
        else:
            made.call("cudaMemcpyAsync", at, at + 3 * US)
            made.copy("h2d", 1 << 20, at + 6 * US, at + 200 * US)


@made
def loading_for_less(made):
    """Batches of 10 ms, which the CPU loads for 1.2 ms each."""
    batches_with_work(made, "kkkkkkkk", "load", 1200 * US, 10 * MS)


@made
def weights_that_are_read(made):
    """Ten weights are read and sent, without a kernel."""
    batches_with_work(made, "kkkkkkkkkk", "load", 5 * MS, 500 * US, kernels=False)


@made
def kernels_with_work_before_their_first_launch(made):
    """Four kernels, each launched once, with 50 ms of the CPU before each."""
    batches_with_work(made, "abcd", "load")


@made
def work_of_many_names(made):
    """The CPU works for 50 ms before each kernel, on something else each time."""
    for i in range(6):
        made.now = i * 51 * MS
        made.range(f"work on {'abcdef'[i]}", made.now - 50 * MS + 10 * US, made.now, "op")
        made.call("cudaLaunchKernel", made.now, made.now + 3 * US)
        made.kernel("k", made.now + 4 * US, made.now + MS)


# Launches.


@made
def kernels_that_are_waited_for(made):
    """Kernels of 2 us. Every third is waited for."""
    for i in range(120):
        at = i * 12 * US
        made.call("cudaLaunchKernel", at, at + 4 * US)
        made.kernel("k", at + 6 * US, at + 8 * US)
        if i % 3 == 2:
            made.call("cudaDeviceSynchronize", at + 5 * US, at + 10 * US)


@made
def short_kernels_with_a_loader(made):
    """Kernels of 2 us, every 12. A loader takes 4 us of each gap."""
    for i in range(100):
        at = i * 12 * US
        made.call("cudaLaunchKernel", at, at + 900)
        made.kernel("k", at + 6 * US, at + 8 * US)
        made.range("DataLoader.__next__", at + 8 * US, at + 12 * US, "op")


@made
def short_kernels_of_little(made):
    """Twenty kernels of 2 us and one of 700, eight times: the short ones take less than a twentieth of the time."""
    for _ in range(8):
        for _ in range(20):
            made.launch("k", length=2 * US)
        made.launch("long", length=700 * US)


@made
def one_cold_pass(made):
    """Twenty launches of 10 us, whose kernels take 2. Between them are four first launches of 0.1 ms."""
    for name in "abcd":
        for _ in range(5):
            made.launch("k", 10 * US, 2 * US)
        made.launch(name, 100 * US, 2 * US)


# Causes that are known by their names.


def streams_and_the_default(made, events=False, behind=300 * US, count=24, streams=4):
    """Kernels of one block on some streams by turns, all launched ahead. A short one on the default stream, so long after
    the beginning of each, stands between two of them."""
    made.put("d", 132, 3)
    now = 400 * US
    for i in range(count):
        at = i * 10 * US
        if events:
            made.call("cudaStreamWaitEvent", at - 2 * US, at - US)
        made.call("cudaLaunchKernel", at, at + 3 * US)
        made.kernel("part", now, now + 300 * US, stream=20 + i % streams, grid=1, block=64)
        now += behind
        made.call("cudaLaunchKernel", at + 4 * US, at + 7 * US)
        made.kernel("mark", now, now + 2 * US, grid=1, block=64)
        now += 2 * US


@made
def streams_that_wait_by_events(made):
    """Streams of which each waits for an event before its kernel."""
    streams_and_the_default(made, events=True)


@made
def streams_that_wait_once(made):
    """Five streams with a kernel each."""
    streams_and_the_default(made, count=5, streams=5)


@made
def streams_beside_the_default_stream(made):
    """Kernels of 0.3 ms, the next stream's 0.1 ms later: the default stream's run beside them."""
    streams_and_the_default(made, behind=100 * US)


def optimizer(made, steps, forward, parameters):
    """So many kernels, and four for each parameter in a range as PyTorch makes it around an optimizer's step."""
    for _ in range(steps):
        for _ in range(forward):
            made.launch("layer", length=2 * US)
        begin = made.now
        for _ in range(4 * parameters):
            made.launch("addcmul", length=2 * US)
        made.range("Optimizer.step#AdamW.step", begin, made.now)


@made
def optimizer_of_few_parameters(made):
    """Three steps with ten layers and two parameters."""
    optimizer(made, 3, 10, 2)


@made
def optimizer_of_a_deep_model(made):
    """Five steps with a hundred layers, whose optimizer has few launches of all."""
    optimizer(made, 5, 100, 5)


@made
def products_of_a_gpu_that_waits(made):
    """A product in fp32 of 1 ms, behind 20 ms of something else each: all that the GPU does."""
    for _ in range(6):
        made.launch("volta_sgemm_128x64_tn", length=MS)
        made.now += 20 * MS


def take_turns(made, offsets=(0, 130 * US, 260 * US), cycle=390 * US, own=True, alike=True, waits=10 * US):
    """Three threads launch sixteen kernels of 2 us each in 128 us, and wait for them. They begin so long after a cycle does."""
    for cycle_begin in range(0, 12 * cycle, cycle):
        for thread, offset in enumerate(offsets):
            made.thread(thread)
            at = cycle_begin + offset
            for _ in range(16):
                made.call("cudaLaunchKernel", at, at + 4 * US)
                name = "layer" if alike else "part_%d" % thread
                made.kernel(name, at + 6 * US, at + 8 * US, stream=13 + thread if own else 7)
                at += 8 * US
            made.call("cudaStreamSynchronize", at, at + waits)


@made
def threads_that_launch_together(made):
    """They begin 60 us after one another."""
    take_turns(made, offsets=(0, 60 * US, 120 * US), cycle=330 * US)


@made
def threads_with_little_to_do(made):
    """Nobody launches for most of the time."""
    take_turns(made, cycle=1200 * US)


@made
def threads_that_wait_for_their_kernels(made):
    """Each waits until it is its turn again."""
    take_turns(made, waits=250 * US)


@made
def threads_of_one_stream(made):
    """All of them launch onto one stream."""
    take_turns(made, own=False)


@made
def threads_of_other_kernels(made):
    """Each launches a kernel of its own."""
    take_turns(made, alike=False)


@made
def work_between_small_copies(made):
    """A small copy, three kernels, a copy back that is waited for, then 0.3 ms of the CPU's own work."""
    for _ in range(40):
        made.bring(2 * US)
        for name in ("layer", "tanh", "head"):
            made.launch(name, length=4 * US)
        made.call("cudaMemcpyAsync", made.now, made.now + 4 * US)
        made.copy("d2h", 32, made.now + 6 * US, made.now + 8 * US)
        made.call("cudaStreamSynchronize", made.now + 5 * US, made.now + 11 * US)
        made.now += 311 * US


@made
def range_around_the_run(made):
    """Steps of 2 ms whose CPU work is in no range but the one around all of them."""
    for _ in range(10):
        made.launch("k", length=90 * US)
        made.now += 2 * MS
    made.range("main", 0, made.now)


@made
def graph_launches_behind_the_recording(made):
    """Forty launches of a graph of two kernels. The last two left no records."""
    for i in range(40):
        at = i * 400 * US
        made.call("cudaGraphLaunch", at, at + 20 * US)
        for node in range(2 if i < 38 else 0):
            start = at + (25 + 100 * node) * US
            made.kernel("ab"[node], start, start + 90 * US)


def waiting(made, shared=0, **reasons):
    """Forty kernels of 1 ms whose warps were sampled."""
    made.shared(shared)
    for _ in range(40):
        made.launch("k", length=MS)
    made.waits("k", **reasons)


@made
def barriers_of_a_quarter(made):
    """Warps wait at barriers for a quarter, and for instructions for a fifth."""
    waiting(made, barrier=2500, no_instructions=2000, long_scoreboard=5500)


@made
def shared_memory_waits_of_a_quarter(made):
    """Warps wait for shared memory for a quarter."""
    waiting(made, 4096, short_scoreboard=2500, long_scoreboard=7500)


@made
def special_units(made):
    """Warps wait for special units for three quarters, in a kernel without shared memory."""
    waiting(made, short_scoreboard=7500, long_scoreboard=2500)


@made
def kernel_of_a_long_start(made):
    """A first call of a second, and a kernel of 20 ms."""
    made.call("cudaMalloc", -S, -20 * US)
    made.launch("k", length=20 * MS)


@made
def start_that_takes_longer(made):
    """A first call of a second, and ten rounds in which the CPU works for 28 ms and launches a kernel of 1 ms."""
    made.call("cudaMalloc", -S, -20 * US)
    for i in range(10):
        made.now = i * 30 * MS
        made.launch("k", length=MS)
        made.call("cudaDeviceSynchronize", made.now, made.now + 2 * US)


@made
def solves_of_four_sizes(made):
    """Ranges that are called iterations, each half as long again as the one before."""
    for length in (10 * MS, 14 * MS, 18 * MS, 20 * MS):
        start = made.now
        for i in range(4):
            made.launch("abcd"[i], length=length // 4)
        made.range("iteration", start, made.now)


@made
def two_turns_of_another_process(made):
    """Kernels of 0.1 ms that are queued ahead. Two of them start 2.4 ms late, and nothing says why."""
    for i in range(20):
        made.call("cudaLaunchKernel", made.now - 5 * US, made.now)
        if i in (6, 13):
            made.now += 2_400 * US
        made.kernel("ab"[i % 2], made.now, made.now + 100 * US)
        made.now += 100 * US + 10


@made
def thread_that_falls_silent(made):
    """Thirty iterations with 20 kernels each. In the 21st the records of all of it end behind 10, but for the ranges."""
    for i in range(30):
        start = i * 5 * MS
        made.now = start
        for k in range(20 if i < 20 else 10 if i == 20 else 0):
            made.launch("ab"[k % 2], length=200 * US)
        made.thread(0)
        made.range(f"iteration {i}", start, start + 4_900 * US)


@made
def first_launch_beside_small_copies(made):
    """Two copies of pageable memory of 50 us, a first launch of 273 us, a kernel of 67 us, and a copy back."""
    made.call("cudaMemcpy", -107 * US, 0)
    made.copy("h2d", 1 << 20, 0, 45 * US, memory="pageable")
    made.call("cudaMemcpy", 1 * US, 134 * US)
    made.copy("h2d", 1 << 20, 135 * US, 190 * US, memory="pageable")
    made.call("cudaLaunchKernel", 136 * US, 409 * US)
    made.kernel("k", 410 * US, 477 * US)
    made.call("cudaMemcpy", 478 * US, 629 * US)
    made.copy("d2h", 1 << 20, 483 * US, 540 * US, memory="pageable")


def half_graphed(made, length, waits=False):
    """Eight training steps: a graph of ten kernels of 50 us, and six of so long that are launched one by one."""
    for i in range(8):
        at = i * MS
        made.call("cudaGraphLaunch", at, at + 10 * US)
        for node in range(10):
            made.kernel("gemm", at + 15 * US + node * 50 * US, at + 65 * US + node * 50 * US - 10)
        for op in range(6):
            begin = at + 520 * US + op * 80 * US
            made.call("cudaLaunchKernel", begin - 10 * US, begin - 5 * US)
            made.kernel("foreach", begin, begin + length)
            if waits:
                made.call("cudaStreamSynchronize", begin - 4 * US, begin + length + 2 * US)
        made.range("Optimizer.step#SGD.step", at + 505 * US, at + 990 * US)
        made.range(f"ProfilerStep#{i}", at, at + 995 * US)


@made
def half_graphed_steps_that_wait(made):
    """It takes 10 us of each 80, and the CPU waits for each."""
    half_graphed(made, 10 * US, waits=True)


@made
def thread_that_waits_for_results(made):
    """Forty kernels of 0.1 ms, of which each fourth is launched late, and a thread that waits for each of them."""
    at = 0
    for i in range(40):
        made.thread(0)
        begin = at + (1 if i % 4 == 0 else -60) * US
        made.call("cudaLaunchKernel", begin, begin + 5 * US)
        made.kernel("k", at + 10 * US, at + 110 * US)
        made.thread(1)
        made.call("cudaEventSynchronize", at + 30 * US, at + 115 * US)
        made.call("cudaEventDestroy", at + 116 * US, at + 117 * US)
        at += (140 if i % 4 == 3 else 100) * US


def rounds_of_streams(made, streams, waiting):
    """Forty kernels of 16 blocks and 0.3 ms on streams by turns. Of ten launches so many wait by an event for the one before."""
    made.put("d", 132, 3)
    at = 0
    for i in range(40):
        if i % 10 < waiting:
            made.call("cudaStreamWaitEvent", at - 20 * US, at - 19 * US)
        made.call("cudaLaunchKernel", at - 15 * US, at - 10 * US)
        made.kernel("trace_rays", at, at + 300 * US, stream=7 + i % streams, grid=16)
        at += 302 * US


@made
def two_streams_by_turns(made):
    """On two streams, which is a producer and its consumer."""
    rounds_of_streams(made, 2, 10)


@made
def streams_of_which_half_wait(made):
    """On four streams, of which half wait."""
    rounds_of_streams(made, 4, 5)


def launches_that_wait(made, length, free):
    """Forty launches whose call covers the kernel and 20 us of the CPU's behind it, but for those with these numbers."""
    at = 0
    for i in range(40):
        made.call("cudaLaunchKernel", at, at + (3 * US if i in free else 6 * US + length))
        made.kernel("k", at + 4 * US, at + 4 * US + length)
        at += length + 26 * US


@made
def kernels_that_end_before_their_launch(made):
    """Of kernels of 3 us, as an ordinary launch of 9 us does."""
    launches_that_wait(made, 3 * US, [])


@made
def launches_of_which_most_wait(made):
    """Of kernels of 30 us, but for each fifth."""
    launches_that_wait(made, 30 * US, range(0, 40, 5))


@made
def graphs_that_are_kept(made):
    """A server makes two graphs of each size, one of them for later, and launches the other."""
    at = 0
    for i in range(20):
        made.call("cudaGraphInstantiate", at, at + 200 * US)
        made.call("cudaGraphInstantiate", at + 210 * US, at + 410 * US)
        made.call("cudaGraphLaunch", at + 420 * US, at + 430 * US)
        made.kernel("k", at + 435 * US, at + 1_400 * US)
        at += 1_500 * US


def main():
    for function in INPUTS:
        made = Made()
        function(made)
        print("=", function.__name__, made.source)
        print("\n".join(made.lines))


if __name__ == "__main__":
    sys.exit(main())
