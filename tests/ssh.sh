#!/bin/sh
# A job followed through a real sshd on the loopback, with a key, a port and a configuration of its own. No GPU: two "ranks" on the fake
# CUPTI (tests/fake) launch for some seconds, each under `cuptop trace --out`; meanwhile a report of them is read over ssh, and the link is
# killed again and again. Prints what was recorded, and what arrived.
#
# usage: ssh.sh CUPTOP [SECONDS] [LAUNCHES_A_ROUND]
#
# Fails when a record is missing or comes twice, when a report differs, or when something is left running. Where there is no sshd, says so
# and ends with 0.
set -eu
cuptop=$(realpath "$1") seconds=${2:-12} launches=${3:-200}
sshd=$(command -v sshd || echo /usr/sbin/sshd)
for need in "$sshd" ssh ssh-keygen cc python3 pgrep; do
    if ! command -v "$need" >/dev/null; then echo "skipped: no $need here"; exit 0; fi
done
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
daemon= ranks= reader=
cleanup() {
    for pid in $reader $ranks $daemon; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
# As root sshd wants a folder to lock itself into; where there is none this run makes it, and takes it away.
if [ "$(id -u)" = 0 ] && [ ! -d /run/sshd ]; then
    mkdir -m 755 /run/sshd
    trap 'cleanup; rmdir /run/sshd 2>/dev/null || true' EXIT
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
cp "$work/user_key.pub" "$work/authorized_keys"
echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$work/host_key.pub")" >"$work/known_hosts"
mkdir -p "$work/far bin" "$work/home"
ln -s "$cuptop" "$work/far bin/cuptop"
cat >"$work/sshd_config" <<END
ListenAddress 127.0.0.1
Port $port
HostKey $work/host_key
PidFile none
AuthorizedKeysFile $work/authorized_keys
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
LogLevel ERROR
SetEnv PATH="$work/far bin:/usr/bin:/bin"
END
cat >"$work/ssh_config" <<END
Host far
    HostName 127.0.0.1
    Port $port
    IdentityFile $work/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $work/known_hosts
    StrictHostKeyChecking yes
END
"$sshd" -D -e -f "$work/sshd_config" 2>"$work/sshd.log" &
daemon=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    if ssh -F "$work/ssh_config" -o BatchMode=yes far true 2>/dev/null; then break; fi
    sleep 0.3
done
if ! ssh -F "$work/ssh_config" -o BatchMode=yes far true 2>"$work/why"; then
    echo "skipped: sshd does not start here: $(tail -1 "$work/sshd.log" "$work/why" | tr '\n' ' ')"
    exit 0
fi
export CUPTOP_SSH="ssh -F $work/ssh_config"

# The far sides of this run: others on this machine may be followed too.
far_sides() {
    for pid in $(pgrep -f "cuptop serve-recordings" || true); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qF "$work/far bin"; then echo "$pid"; fi
    done
}

cc -O1 -shared -fPIC -pthread -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.580.1.1" "$here/fake/libcuda.c" -ldl
ln -s libcuda.so.580.1.1 "$work/libcuda.so.1"
cc -O1 -shared -fPIC -pthread -Wl,-soname,libcupti.so.13 -o "$work/libcupti.so.13" "$here/fake/libcupti.c" -ldl
cc -O1 -pthread -o "$work/program" "$here/fake/program.c" -ldl
mkdir -m 700 "$work/job of two"
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 "$cuptop" trace --headless --json --out "$work/job of two" -- env LD_LIBRARY_PATH="$work" \
        CUPTOP_CUPTI="$work/libcupti.so.13" "$work/program" soak "$launches" "$seconds" >"$work/rank$rank.json" 2>"$work/rank$rank.log" &
    ranks="$ranks $!"
done
for _ in $(seq 100); do
    if [ "$(ls "$work/job of two"/*.run/*.cuptop 2>/dev/null | wc -l)" -ge 2 ]; then break; fi
    sleep 0.2
done
mkdir -m 700 "$work/run"
XDG_RUNTIME_DIR="$work/run" "$cuptop" report "far:$work/job of two" --json >"$work/far.json" 2>"$work/far.log" &
reader=$!
# A link that was never there is not made again.
for _ in $(seq 100); do
    if [ -n "$(find "$work/run" -name '*.cuptop')" ]; then break; fi
    sleep 0.2
done
kills=0
while kill -0 "$reader" 2>/dev/null; do
    sleep 2
    pid=$(far_sides | head -1)
    if [ -n "$pid" ] && [ $kills -lt 4 ]; then
        # In turn the program over there, and the sshd that it hangs on.
        if [ $((kills % 2)) = 1 ]; then pid=$(ps -o ppid= -p "$pid" | tr -d ' '); fi
        kill -KILL "$pid" 2>/dev/null || true
        kills=$((kills + 1))
    fi
done
code=0
wait "$reader" || code=$?
for pid in $ranks; do wait "$pid" || true; done
reader= ranks=
"$cuptop" report "$work/job of two" --json >"$work/near.json" 2>"$work/near.log"
sleep 1
left=$(far_sides | wc -l)
python3 - "$work" "$kills" "$code" "$left" <<'END'
import json, sys
work, kills, code, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def load(name):
    with open(f"{work}/{name}.json") as file:
        text = file.read()
    if not text:
        sys.exit(f"FAILED: no report of {name}\n" + open(f"{work}/{name}.log").read())
    return json.loads(text)
def strip(it):
    # What differs by where it was read from: the trace's own name and path.
    it = dict(it)
    for key in ("source", "generated"):
        it.pop(key, None)
    return it
far, near, log = load("far"), load("near"), open(f"{work}/far.log").read()
ranks = [load("rank0"), load("rank1")]
records = lambda it: it["health"]["received"]
own = sum(records(it) for it in ranks)
lost = far["health"]
broke, again = log.count("the link broke"), log.count("goes on where it broke")
print(f"{'':24}records")
print(f"{'recorded by the ranks':24}{own}")
print(f"{'read from the directory':24}{records(near)}")
print(f"{'followed over ssh':24}{records(far)}")
print(f"links killed {kills}, broken {broke}, made again {again}; left running over there {left}")
same = strip(far) == strip(near)
for key in strip(near):
    if strip(near)[key] != strip(far).get(key):
        print("differs:", key, str(near[key])[:300], "|", str(far.get(key))[:300])
ok = same and code == 0 and left == 0 and kills >= 2 and again >= 2 and records(far) == own > 0
print("passed" if ok else f"FAILED (code {code})\n{log}")
sys.exit(0 if ok else 1)
END
