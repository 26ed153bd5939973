#!/bin/sh
# A soak without a GPU: a program on the fake CUPTI (tests/fake) launches as fast as it is told to, under `cuptop trace`.
#
# usage: soak.sh CUPTOP [SECONDS] [LAUNCHES_A_ROUND] [MEMORY]
#
# A round is followed by a pause of 10 ms; a launch is two records. Prints, every five seconds, the viewer's resident memory
# and the size of the recording, then what the report counted. Fails when the recording outgrew 512 MiB or a record is
# neither there nor counted. The figures are of this machine and its load.
set -eu
cuptop=$1 seconds=${2:-60} launches=${3:-1000} memory=${4:-"256 MiB"}
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
"$cuptop" trace --headless --json --memory "$memory" -- env LD_LIBRARY_PATH="$work" CUPTOP_CUPTI="$work/libcupti.so.13" \
    "$work/program" soak "$launches" "$seconds" >"$work/report.json" 2>"$work/errors" &
pid=$!
echo "seconds  viewer_MiB  recording_MiB"
past=0 most=0
while kill -0 "$pid" 2>/dev/null; do
    rss=$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status" 2>/dev/null || true)
    size=$(du -sm "$work/run" 2>/dev/null | cut -f1 || true)
    size=${size:-0}
    echo "$past  ${rss:-0}  $size"
    if [ "$size" -gt "$most" ]; then most=$size; fi
    sleep 5
    past=$((past + 5))
done
code=0
wait "$pid" || code=$?
pid=
cat "$work/errors"
python3 - "$work/report.json" "$most" "$code" <<'PY'
import json, sys
report, most, code = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
health, gone = report["health"], report.get("let_go") or {}
kernels = sum(d["kernels"] for d in report["devices"])
calls = sum(c["count"] for c in report["calls"])
there = kernels + calls + gone.get("records", 0)
print(f"received {health['received']:,}, on the timeline {kernels + calls:,}, let go {gone.get('records', 0):,}, lost {health['lost']:,}")
counted = there + health["lost"] == health["received"] and health["dropped"] == 0
bounded = most <= 520
print("pass" if counted else "FAIL", "every record is there, let go, or counted as lost")
print("pass" if bounded else "FAIL", f"the recording stayed within 512 MiB: {most} MiB at most")
sys.exit(0 if counted and bounded and code == 0 else 1)
PY
