#!/usr/bin/env python3
"""Whether cuptop tells what a server does: serving.py CUPTOP [OUT] [MODE...]; serving.py --serve MODE SECONDS FILE is the server alone.

The server is a loop of continuous batching with known prefills, decode steps, batches and pauses. It writes what it did when:
`eager` launches each kernel and copies a prompt's first token back, `graph` replays one graph a batch size, `idle` gets bursts of
requests with nothing to do in between, `named` marks its phases by ranges. Each runs under `trace` and, once it serves, `attach`.
Right is: the phases for 98 % of the time, the tokens a second within 2 % (of one of both, where two are told). Needs a GPU and torch."""
import json
import os
import random
import subprocess
import sys
import time

LAYERS, WIDTH, HEADS, WORDS, SLOTS, LONGEST = 12, 1024, 16, 16000, 16, 640
SIZES = (4, 8, 16)


class Model:
    def __init__(self, torch):
        self.torch, self.f = torch, torch.nn.functional
        torch.manual_seed(1)
        made = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
        self.words = made(WORDS, WIDTH)
        self.parts = [(made(WIDTH, 3 * WIDTH), made(WIDTH, WIDTH), made(WIDTH, 4 * WIDTH), made(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
        self.keys, self.values = ([torch.zeros(SLOTS, HEADS, LONGEST, WIDTH // HEADS, device="cuda", dtype=torch.bfloat16)
                                   for _ in range(LAYERS)] for _ in range(2))
        self.token = torch.zeros(SLOTS, device="cuda", dtype=torch.long)
        self.length = torch.ones(SLOTS, device="cuda", dtype=torch.long)
        self.at = torch.arange(LONGEST, device="cuda")
        self.rows = torch.arange(SLOTS, device="cuda")
        self.prompts = torch.randint(0, WORDS, (LONGEST,), device="cuda")
        self.graphs = {}

    def layers(self, x, attend):
        for i, (qkv, out, up, down) in enumerate(self.parts):
            rows, words, _ = x.shape
            h = self.f.layer_norm(x, (WIDTH,)) @ qkv
            q, k, v = h.view(rows, words, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            x = x + attend(i, q, k, v).transpose(1, 2).reshape(rows, words, WIDTH) @ out
            x = x + self.f.gelu(self.f.layer_norm(x, (WIDTH,)) @ up) @ down
        return (self.f.layer_norm(x[:, -1], (WIDTH,)) @ self.words.T).argmax(-1)

    def prefill(self, slot, words):
        def attend(i, q, k, v):
            self.keys[i][slot, :, :words] = k[0]
            self.values[i][slot, :, :words] = v[0]
            return self.f.scaled_dot_product_attention(q, k, v, is_causal=True)
        self.token[slot:slot + 1] = self.layers(self.words[self.prompts[:words]][None], attend)
        self.length[slot] = words

    def decode(self, count):
        length = self.length[:count]
        seen = (self.at[None] <= length[:, None])[:, None, None]

        def attend(i, q, k, v):
            self.keys[i][self.rows[:count], :, length] = k[:, :, 0]
            self.values[i][self.rows[:count], :, length] = v[:, :, 0]
            return self.f.scaled_dot_product_attention(q, self.keys[i][:count], self.values[i][:count], attn_mask=seen)
        self.token[:count] = self.layers(self.words[self.token[:count]][:, None], attend)
        length += 1

    def capture(self):
        for count in SIZES:
            self.decode(count)
            self.torch.cuda.synchronize()
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                self.decode(count)
            self.graphs[count] = graph


def serve(mode, seconds, file):
    import contextlib
    import torch
    model, chance, done = Model(torch), random.Random(3), []
    ranged = torch.cuda.nvtx.range if mode == "named" else lambda _: contextlib.nullcontext()
    with torch.no_grad():
        model.prefill(0, 64)
        model.decode(SLOTS)
        if mode in ("graph", "idle"):
            model.capture()
        torch.cuda.synchronize()
        print("serving", flush=True)
        left, until = [0] * SLOTS, time.monotonic() + seconds
        while time.monotonic() < until:
            count = SLOTS
            if mode == "idle":
                if not any(left):
                    begun = time.time_ns()
                    time.sleep(chance.uniform(0.05, 0.15))
                    done.append(("asleep", begun, time.time_ns(), 0))
                    count = chance.choice(SIZES)
                    left = [chance.randint(20, 60)] * count + [0] * (SLOTS - count)
                    waiting = range(count)
                else:
                    count, waiting = sum(it > 0 for it in left), ()
            else:
                if not done:
                    left = [chance.randint(10, 80) for _ in left]
                    waiting = range(SLOTS)
                else:
                    waiting = [slot for slot in range(SLOTS) if left[slot] == 0]
                    for slot in waiting:
                        left[slot] = chance.randint(20, 80)
            for slot in waiting:
                begun = time.time_ns()
                with ranged("prefill"):
                    model.prefill(slot, chance.randint(64, 500))
                    if mode == "eager":
                        model.token[slot:slot + 1].tolist()
                done.append(("prefill", begun, time.time_ns(), int(mode == "eager")))
            begun = time.time_ns()
            with ranged("decode"):
                model.graphs[count].replay() if model.graphs else model.decode(count)
                model.token[:count].tolist()
            done.append(("decode", begun, time.time_ns(), count))
            left = [max(it - 1, 0) for it in left]
    torch.cuda.synchronize()
    with open(file, "w") as to:
        json.dump(done, to)


def run(cuptop, out, mode, way, seconds):
    """The server under cuptop: where it was saved, and what the server did when."""
    save, truth = os.path.join(out, f"{mode}-{way}"), os.path.join(out, f"{mode}-{way}.truth.json")
    server = [sys.executable, os.path.abspath(__file__), "--serve", mode, str(seconds), truth]
    options = ["--headless", "--save", save]
    with open(save + ".log", "w") as log:
        if way == "trace":
            subprocess.run([cuptop, "trace", *options, *server], stdout=log, stderr=log, timeout=100)
        else:
            child = subprocess.Popen(server, stdout=subprocess.PIPE, stderr=log, text=True)
            child.stdout.readline()
            time.sleep(0.5)
            subprocess.run([cuptop, "attach", str(child.pid), *options, "--duration", f"{int(1000 * seconds * 0.6)}ms"],
                           stdout=log, stderr=log, timeout=60)
            child.wait(60)
    report = subprocess.run([cuptop, "report", save, "--json"], capture_output=True, text=True, timeout=100)
    with open(save + ".json", "w") as to:
        to.write(report.stdout)
    return json.loads(report.stdout), json.load(open(truth))


def overlap(a, b):
    """Time that lies in both of two lists of spans, in order and apart."""
    both, j = 0, 0
    for start, end in a:
        while j < len(b) and b[j][1] <= start:
            j += 1
        k = j
        while k < len(b) and b[k][0] < end:
            both += min(end, b[k][1]) - max(start, b[k][0])
            k += 1
    return both


def judge(report, truth):
    """The part of the time with the right phase, told and true tokens a second."""
    serving = report.get("serving") or []
    if not serving:
        return None
    serving = serving[0]
    runs = serving["runs"]
    first, last = runs[0]["start_ns"], runs[-1]["end_ns"]
    told = {phase: [(it["start_ns"], it["end_ns"]) for it in runs if it["phase"] == phase] for phase in ("prefill", "decode")}
    edges = [first] + [edge for it in runs for edge in (it["start_ns"], it["end_ns"])] + [last]
    told["asleep"] = [(a, b) for a, b in zip(edges[::2], edges[1::2]) if b > a]
    inside = [(phase, max(a, first), min(b, last), tokens) for phase, a, b, tokens in truth if a < last and b > first]
    right = sum(overlap([(a, b) for kind, a, b, _ in inside if kind == phase], told[phase]) for phase in told)
    time_ns = sum(b - a for _, a, b, _ in inside)
    tokens = sum(tokens for _, _, b, tokens in inside if first < b <= last)
    parts = {phase: (round(sum(b - a for a, b in told[phase]) / time_ns, 3), round(sum(b - a for kind, a, b, _ in inside if kind == phase) / time_ns, 3))
             for phase in told}
    return {"phases": right / time_ns, "told": serving["tokens_per_s"], "true": tokens * 1e9 / (last - first), "parts": parts,
            "certainty": serving["certainty"], "from": report["steps"][0]["from"],
            "graphs": serving["graphs"]}


def main():
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2], float(sys.argv[3]), sys.argv[4])
    cuptop, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "gpu-serving")
    os.makedirs(out, exist_ok=True)
    failed, table = 0, []
    for mode in sys.argv[3:] or ["eager", "graph", "idle", "named"]:
        for way in ("trace", "attach"):
            try:
                report, truth = run(cuptop, out, mode, way, 5.0)
                found = judge(report, truth)
            except Exception as error:
                found, said = None, f"FAILED {type(error).__name__} {error}"
            else:
                said = "no serving in the report"
            is_good = bool(found) and found["phases"] >= 0.98 and bool(found["told"]) and any(
                abs(it / found["true"] - 1) <= 0.02 for it in found["told"])
            failed += not is_good
            if found:
                told = " or ".join(f"{it:.1f}" for it in sorted(set(found["told"] or [])))
                said = (f"phases {found['phases']:.1%}, tokens/s {told}, true {found['true']:.1f}, {found['certainty']} by {found['from']}, "
                        f"told and true parts {found['parts']}, graphs {found['graphs']}")
            table.append(f"{mode:6} {way:6} {'ok' if is_good else 'WRONG'} {said}")
            print(table[-1], flush=True)
    print("\n" + "\n".join(table) + f"\n{failed} of {len(table)} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
