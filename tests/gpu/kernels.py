#!/usr/bin/env python3
"""Every bundled kernel against the CPU: random inputs, sizes that fill blocks and sizes that do not, and a reference
computed in 64-bit floats.

usage: kernels.py                 one line a kernel and size; the exit status is the number of those that failed
       kernels.py --references    only what needs no GPU: are all kernels here, are the references right

Needs numpy; with a GPU also CuPy, which compiles kernels/*.cu with NVRTC as cuptop does.
"""
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "kernels"
# Kernels without a result (empty, spin) or made to fail (out_of_bounds).
WITHOUT_RESULT = {"empty", "spin", "out_of_bounds"}
# A NaN that no kernel writes: an output that still holds it was not written.
POISON = np.uint32(0x7FC12345).view(np.float32)
# One rounding of a 32-bit float.
ROUNDING = 2.0**-24


@dataclass
class Case:
    """One kernel at one size."""

    file: str
    entry: str
    n: int  # elements, or rows of a matrix
    grid: tuple
    block: tuple
    inputs: str  # "in place", "array", "sum", "matrix", "two matrices"
    limit: float  # the error that rounding explains
    extra: int | None = None  # a number after the pointers and n

    def count(self):
        """How many values an input has."""
        return self.n * self.n if "matri" in self.inputs else self.n

    def reference(self, a, b):
        """The result in 64-bit floats."""
        wide = a.astype(np.float64)
        square = (self.n, self.n)
        match self.entry:
            case "add_one":
                return wide + 1
            case "copy_f4":
                return wide
            case "sin_once":
                return np.sin(wide)
            case "sin_four":
                return np.sin(np.sin(np.sin(np.sin(wide))))
            case "fma_loop":
                for _ in range(self.extra):
                    wide = wide * 0.9990234375 + 0.0009765625
                return wide
            case "reduce_sum":
                return wide.sum(keepdims=True)
            case "matmul_naive" | "matmul_tiled":
                return (wide.reshape(square) @ b.astype(np.float64).reshape(square)).ravel()
            case _:  # a transposition, of one row or of all
                return wide.reshape(square).T.ravel()

    def written(self):
        """Which values of its output the kernel is to write; it must leave the others as they were."""
        count = 1 if self.inputs == "sum" else self.count()
        if self.entry == "transpose_row":
            return np.arange(count) % self.n == self.extra
        return np.ones(count, bool)

    def error(self, result, reference):
        """The largest difference, over the largest value of the reference where that is more than 1. Infinite where
        a value is none, or lies where the kernel must not write."""
        written = self.written()
        if not np.array_equal(result.view(np.uint32)[~written], np.full((~written).sum(), POISON).view(np.uint32)):
            return np.inf
        off = np.abs(result.astype(np.float64) - reference)[written].max() / max(1.0, np.abs(reference).max())
        return off if np.isfinite(off) else np.inf


def cases():
    """All kernels at sizes that fit their blocks and at sizes that do not."""
    for n in (1, 255, 4096, 100_003):
        wide, block = (-(-n // 1024), 1, 1), (256, 1, 1)
        # The hardware's sine is off by 2^-21 at most in this range.
        sine = 2.0**-20
        yield Case("add.cu", "add_one", n, (-(-n // 256), 1, 1), block, "in place", ROUNDING)
        yield Case("copy.cu", "copy_f4", n, wide, block, "array", 0.0)
        yield Case("sin.cu", "sin_once", n, wide, block, "in place", sine)
        yield Case("sin.cu", "sin_four", n, wide, block, "in place", 4 * sine)
        yield Case("fma.cu", "fma_loop", n, wide, block, "in place", 100 * ROUNDING, extra=100)
        # A thread adds up to a few values, a tree the rest: far fewer roundings than values.
        yield Case("reduce.cu", "reduce_sum", n, wide, block, "sum", 64 * ROUNDING)
    for n in (1, 32, 100, 300):
        tiles = (-(-n // 32), -(-n // 32), 1)
        for entry in ("transpose_naive", "transpose_tiled", "transpose_tiled_padded"):
            yield Case("transpose.cu", entry, n, tiles, (32, 8, 1), "matrix", 0.0)
        yield Case("transpose.cu", "transpose_row", n, (-(-n // 256), 1, 1), (256, 1, 1), "matrix", 0.0, extra=n // 2)
    for n in (1, 100, 128, 300, 512):
        for entry, side in (("matmul_naive", 16), ("matmul_tiled", 128)):
            tiles = (-(-n // side), -(-n // side), 1)
            # n products and sums, each rounded at most once; their errors are not all of one sign.
            yield Case("matmul.cu", entry, n, tiles, (16, 16, 1), "two matrices", max(n, 4) * ROUNDING)


def references():
    """What needs no GPU: that no kernel is left out, and that the references and the comparison are right."""
    entries = {(file.name, entry) for file in FOLDER.glob("*.cu")
               for entry in re.findall(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(", file.read_text())}
    assert len(entries) > len(WITHOUT_RESULT), f"no kernels in {FOLDER}"
    missing = {e for e in entries if e[1] not in WITHOUT_RESULT} ^ {(c.file, c.entry) for c in cases()}
    assert not missing, f"kernels and cases differ: {missing}"

    def case(entry, n, extra=None):
        found = next(c for c in cases() if c.entry == entry)
        found.n, found.extra = n, extra if extra is not None else found.extra
        return found

    def array(*values):
        return np.array(values, np.float32)

    four = array(1, 2, 3, 4)
    assert case("matmul_tiled", 2).reference(four, array(5, 6, 7, 8)).tolist() == [19, 22, 43, 50]
    assert case("transpose_tiled", 2).reference(four, None).tolist() == [1, 3, 2, 4]
    assert case("reduce_sum", 255).reference(np.full(255, 0.5, np.float32), None).tolist() == [127.5]
    assert case("add_one", 2).reference(array(0.5, -3), None).tolist() == [1.5, -2]
    # 0 -> 1/1024 -> (1023/1024 + 1)/1024
    assert case("fma_loop", 1, 2).reference(array(0), None).tolist() == [2047 / 1048576]
    # sin(1) = 0.8414709848, sin of that = 0.7456241417, and so on (hand calculator).
    assert abs(case("sin_four", 1).reference(array(1), None)[0] - 0.6275718320) < 1e-9
    # A wrong, a missing and a value that is none are all seen.
    add = case("add_one", 2)
    assert add.error(array(1.5, 2), np.array([1.5, 2])) == 0
    for wrong in (array(1.5, 2.1), array(1.5, np.nan), array(POISON, 2), array(np.inf, 2)):
        assert not add.error(wrong, np.array([1.5, 2])) <= add.limit, wrong
    # Row 0 of 2 x 2 becomes column 0; column 1 must stay as it was.
    row = case("transpose_row", 2, 0)
    assert row.error(array(1, POISON, 2, POISON), np.array([1.0, 3, 2, 4])) == 0
    assert row.error(array(1, 3, 2, POISON), np.array([1.0, 3, 2, 4])) == np.inf


def on_the_gpu(case, cupy, module, seed):
    """Runs one kernel; how far its result is from the reference."""
    random = np.random.default_rng(seed)
    a = random.random(case.count(), np.float32)
    b = random.random(case.count(), np.float32) if case.inputs == "two matrices" else None
    given = [cupy.asarray(x) for x in (a, b) if x is not None]
    if case.inputs == "in place":
        out = given[0]
    else:
        # From the host, so that the bits of the NaN arrive as they are. A sum is added to what is there: 0.
        out = cupy.asarray(np.zeros(1, np.float32) if case.inputs == "sum" else np.full(a.size, POISON))
        given.append(out)
    numbers = [np.int32(case.n)] + ([] if case.extra is None else [np.int32(case.extra)])
    module.get_function(case.entry)(case.grid, case.block, (*given, *numbers))
    cupy.cuda.runtime.deviceSynchronize()
    return case.error(cupy.asnumpy(out), case.reference(a, b))


def main():
    references()
    if sys.argv[1:] == ["--references"]:
        print("the references are right, and no kernel is left out")
        return 0
    import cupy

    modules, failed, total = {}, 0, 0
    print("kernel                   n         largest relative error, limit")
    for seed, case in enumerate(cases()):
        total += 1
        try:
            if case.file not in modules:
                text = (FOLDER / case.file).read_text()
                modules[case.file] = cupy.RawModule(code=text, options=("-std=c++17",), backend="nvrtc")
            error = on_the_gpu(case, cupy, modules[case.file], seed)
            ok, words = error <= case.limit, f"{error:.2e}  {case.limit:.0e}"
        except Exception as problem:  # one kernel that cannot run must not hide the others
            ok, words = False, " ".join(str(problem).split())[:200]
        failed += not ok
        print(f"{'ok   ' if ok else 'WRONG'}  {case.entry:24} n = {case.n:<8} {words}", flush=True)
    print(f"{failed} of {total} failed")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
