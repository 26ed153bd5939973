#!/usr/bin/env python3
"""Writes an Nsight Systems export of N kernels, each with its launch, and a copy and an NVTX range for every tenth.

usage: make_nsys.py N OUT.sqlite      (1000000 gives 2.2 M rows; the figures mean nothing)
"""
import os
import sqlite3
import sys

n, out = int(sys.argv[1]), sys.argv[2]
if os.path.exists(out):
    os.remove(out)
db = sqlite3.connect(out)
db.executescript("""
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
  cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
  sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
  textId INTEGER, domainId INTEGER);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER, uuid TEXT, smCount INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 0, 'GPU-00000000-0000-0000-0000-000000000001', 132);
""")
names = [(i, f"void kernel_{i}<float, {i}>(int, float*, float const*)") for i in range(1, 61)]
names += [(100, "cudaLaunchKernel_v7000"), (101, "cudaMemcpyAsync_v3020"), (102, "step")]
db.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
pid = (1 << 56) | (4242 << 24)
tid = pid | 4243
B = 50_000
for a in range(0, n, B):
    r = range(a, min(a + B, n))
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,?,0,NULL)",
                   ((i * 5000, i * 5000 + 3000, tid, i, 100) for i in r))
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,NULL,?,?,?,?,?,NULL,1,0,32,?,1,1,256,1,1,0,0,0,0,?,32768,NULL,0)",
                   ((i * 5000 + 4000, i * 5000 + 8500, 7 + i % 4 * 6, i, pid, 1 + i % 60, 1 + i % 60, 100 + i % 60, i) for i in r))
    tenth = [i for i in r if i % 10 == 0]
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,0,1,31,?,?,?,1,1,2)",
                   ((i * 5000 + 100, i * 5000 + 4100, n + i, pid, 1 << 20) for i in tenth))
    db.executemany("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,?,0)",
                   ((i * 5000, i * 5000 + 40000, None if i % 20 else "iteration", tid, 102 if i % 20 else None) for i in tenth))
db.commit()
