#!/usr/bin/env python3
"""Writes a Kineto trace of N kernels, each with its operator, its launch and the two ends of its arrow.

usage: make_kineto.py N OUT.json      (1000000 gives about 1.2 GB; the figures mean nothing)

Keys, their order and the line breaks are those that PyTorch 2.11 writes; times have three decimals, as there. A kernel is
launched every 10 us on one of eight streams, and every fifth is short.
"""
import sys

KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >",
]
HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""
EVENT = """  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 574, "tid": 574,
    "ts": {op:.3f}, "dur": 8.101,
    "args": {{
      "External id": {id},"Record function id": 0, "Ev Idx": {index}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 574, "tid": 574,
    "ts": {call:.3f}, "dur": 4.500,
    "args": {{
      "External id": {id}, "cbid": 211, "correlation": {id}
    }}
  }},
  {{
    "ph": "s", "id": {id}, "pid": 574, "tid": 574, "ts": {call:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": {stream},
    "ts": {start:.3f}, "dur": {length:.3f},
    "args": {{
      "External id": {id}, "queued": 0, "device": 0, "context": 1,
      "stream": {stream}, "correlation": {id},
      "registers per thread": 32, "shared memory": 0,
      "blocks per SM": 0.969697, "warps per SM": 7.757576,
      "grid": [128, 1, 1], "block": [256, 1, 1],
      "est. achieved occupancy %": 12
    }}
  }},
  {{
    "ph": "f", "id": {id}, "pid": 0, "tid": {stream}, "ts": {start:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"""


def main(n, out):
    with open(out, "w", encoding="ascii", buffering=1 << 22) as to:
        to.write(HEAD)
        for i in range(n):
            at = 4368170442755.0 + i * 10.0
            to.write(EVENT.format(
                op=at, call=at + 3, start=at + 12.25, length=8.123 if i % 5 else 3.5,
                id=i + 1, index=i, stream=7 + i % 8 * 4, kernel=KERNELS[i % 3],
            ))
        to.write('  {\n    "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 0\n  }\n]}\n')


if len(sys.argv) != 3 or not sys.argv[1].isdigit():
    sys.exit(__doc__)
main(int(sys.argv[1]), sys.argv[2])
