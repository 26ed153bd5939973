#!/bin/sh
# A soak without a GPU: a program on the fake CUPTI (tests/fake) launches as fast as it is told to, under `cuptop trace`.
#
# usage: soak.sh CUPTOP [SECONDS] [LAUNCHES_A_ROUND] [MEMORY_MIB]
#
# A round is followed by a pause of 10 ms; a launch is two records. Prints, every five seconds, the viewer's memory and the size
# of the recording, then what the report counted. Fails when the viewer took more than its budget at any time, the report at
# the end included, when the recording outgrew 512 MiB, or when a record is neither there nor counted. Memory is what is the
# viewer's own (RssAnon): pages of the program's file are not. The figures are of this machine and its load.
set -eu
cuptop=$1 seconds=${2:-60} launches=${3:-1000} memory=${4:-256}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
cc -O1 -shared -fPIC -pthread -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.580.1.1" "$here/fake/libcuda.c" -ldl
ln -s libcuda.so.580.1.1 "$work/libcuda.so.1"
cc -O1 -shared -fPIC -pthread -Wl,-soname,libcupti.so.13 -o "$work/libcupti.so.13" "$here/fake/libcupti.c" -ldl
cc -O1 -pthread -o "$work/program" "$here/fake/program.c" -ldl
mkdir -m 700 "$work/run"
export XDG_RUNTIME_DIR="$work/run"
"$cuptop" trace --headless --json --memory "$memory MiB" -- env LD_LIBRARY_PATH="$work" CUPTOP_CUPTI="$work/libcupti.so.13" \
    "$work/program" soak "$launches" "$seconds" >"$work/report.json" 2>"$work/errors" &
pid=$!
echo "seconds  viewer_MiB  recording_MiB"
past=0 most=0 peak=0
while kill -0 "$pid" 2>/dev/null; do
    rss=$(awk '/^RssAnon/ { print int($2 / 1024) }' "/proc/$pid/status" 2>/dev/null || true)
    rss=${rss:-0}
    if [ "$rss" -gt "$peak" ]; then peak=$rss; fi
    if [ $((past % 50)) -eq 0 ]; then
        size=$(du -sm "$work/run" 2>/dev/null | cut -f1 || true)
        size=${size:-0}
        echo "$((past / 10))  $rss  $size"
        if [ "$size" -gt "$most" ]; then most=$size; fi
    fi
    sleep 0.1
    past=$((past + 1))
done
code=0
wait "$pid" || code=$?
pid=
cat "$work/errors"
python3 - "$work/report.json" "$most" "$peak" "$memory" "$code" <<'PY'
import json, sys
report, (most, peak, memory, code) = json.load(open(sys.argv[1])), map(int, sys.argv[2:])
health, gone = report["health"], report.get("let_go") or {}
kernels = sum(d["kernels"] for d in report["devices"])
calls = sum(c["count"] for c in report["calls"])
there = kernels + calls + gone.get("records", 0)
print(f"received {health['received']:,}, on the timeline {kernels + calls:,}, let go {gone.get('records', 0):,}, lost {health['lost']:,}")
checks = [
    (there + health["lost"] == health["received"] and health["dropped"] == 0, "every record is there, let go, or counted as lost"),
    (most <= 520, f"the recording stayed within 512 MiB: {most} MiB at most"),
    (0 < peak <= memory, f"the viewer stayed within {memory} MiB: {peak} MiB at most"),
    (code == 0, f"it ended with {code}"),
]
for ok, what in checks:
    print("pass" if ok else "FAIL", what)
sys.exit(0 if all(ok for ok, _ in checks) else 1)
PY
