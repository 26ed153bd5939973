#!/usr/bin/env python3
"""Whether nodes of CUDA graphs get the lines that asked for them: graph_names.py CUPTOP [OUT] [CASE...].

Each case runs under cuptop. Every line of its model works on tensors of a size of its own, and runs once without a graph inside an NVTX
range with its line and layer: so a kernel's grid, or a copy's size, says which line and layer is right. The table has, by case, the
nodes that ran, those with a name, their part of the time, and the wrong ones. `cost` runs without checks: capture, instantiation
and replays with names and without, in pairs. Needs a GPU, torch, and for `generate` transformers."""
import ctypes
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time

REPLAYS, LAYERS = 20, 6


def ranged(layer):
    """A range with the caller's line, where no graph is being captured."""
    import torch
    import contextlib
    if torch.cuda.is_current_stream_capturing():
        return contextlib.nullcontext()
    return torch.cuda.nvtx.range(f"L{sys._getframe(1).f_lineno} {layer}")


def layers_of(torch):
    class Layer(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number
            self.t = [torch.ones(4096 * (8 * number + j + 1), device="cuda") for j in range(6)]
            self.o = [torch.empty_like(t) for t in self.t]

        def forward(self, x):
            n = self.number
            with ranged(n): self.t[0].mul_(2.0)
            with ranged(n): torch.add(self.t[1], 1.0, out=self.o[1]); self.t[1].sub_(1.0)
            with ranged(n): self.o[2].copy_(self.t[2])
            self.inner(n)
            return x + 1.0

        def inner(self, n):
            with ranged(n): torch.exp(self.t[3], out=self.o[3])
            for part in (4, 5):
                with ranged(n): torch.sin(self.t[part], out=self.o[part])

    class Model(torch.nn.Module):
        def __init__(self, first=0):
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer(first + number) for number in range(LAYERS))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    return Model


def cudart():
    import glob
    import nvidia
    found = [p for base in nvidia.__path__ for p in glob.glob(os.path.join(base, "**", "libcudart.so.*"), recursive=True)]
    return ctypes.CDLL(sorted(found)[0])


def check(code, what):
    if code:
        raise SystemExit(f"{what}: {code}")


def raw(torch, run):
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        run()
    return graph, ctypes.c_void_p(graph.raw_cuda_graph())


def instantiate(rt, graph):
    made = ctypes.c_void_p()
    check(rt.cudaGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)), "instantiate")
    return made


def launch(torch, rt, made):
    for _ in range(REPLAYS):
        check(rt.cudaGraphLaunch(made, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)), "launch")
    torch.cuda.synchronize()


def case(name):
    import torch
    x = torch.ones(1000, device="cuda")
    Model = layers_of(torch)
    with torch.no_grad():
        model = Model()
        model(x)
        torch.cuda.synchronize()
        if name == "graph":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(x)
            for _ in range(REPLAYS):
                graph.replay()
        elif name == "twice":
            rt, (kept, graph) = cudart(), raw(torch, lambda: model(x))
            both = instantiate(rt, graph), instantiate(rt, graph)
            for made in both:
                launch(torch, rt, made)
        elif name == "child":
            rt, (kept, graph) = cudart(), raw(torch, lambda: model(x))
            parent, node = ctypes.c_void_p(), ctypes.c_void_p()
            check(rt.cudaGraphCreate(ctypes.byref(parent), 0), "create")
            check(rt.cudaGraphAddChildGraphNode(ctypes.byref(node), parent, None, ctypes.c_size_t(0), graph), "child")
            launch(torch, rt, instantiate(rt, parent))
        elif name == "updated":
            rt, other = cudart(), Model(LAYERS)
            other(x)
            torch.cuda.synchronize()
            (kept, graph), (kept2, next_graph) = raw(torch, lambda: model(x)), raw(torch, lambda: other(x))
            made, info = instantiate(rt, graph), (ctypes.c_uint64 * 4)()
            launch(torch, rt, made)
            check(rt.cudaGraphExecUpdate(made, next_graph, info), "update")
            launch(torch, rt, made)
        elif name == "relined":
            rt = cudart()
            a, b = torch.ones(4096 * 301, device="cuda"), torch.ones(4096 * 302, device="cuda")
            def one():
                with ranged(0): a.mul_(3.0)
            def two():
                with ranged(0): b.mul_(3.0)
            one(), two(), torch.cuda.synchronize()
            (kept, graph), (kept2, next_graph) = raw(torch, one), raw(torch, two)
            made, info = instantiate(rt, graph), (ctypes.c_uint64 * 4)()
            launch(torch, rt, made)
            check(rt.cudaGraphExecUpdate(made, next_graph, info), "update")
            launch(torch, rt, made)
        elif name == "destroyed":
            for _ in range(300):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    model(x)
                graph.replay()
        torch.cuda.synchronize()
    if name == "compiled":
        def f(a, b):
            c = torch.relu(a @ b)
            d = torch.softmax(c, -1)
            return (d @ b).sum(-1)
        a, b = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
        g = torch.compile(f, mode="reduce-overhead")
        for _ in range(REPLAYS):
            g(a, b)
    elif name == "callables":
        module = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
        sample = torch.randn(64, 256, device="cuda", requires_grad=True)
        module = torch.cuda.make_graphed_callables(module, (sample,))
        for _ in range(REPLAYS):
            module(sample).sum().backward()
    elif name == "generate":
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=6, num_attention_heads=4,
                             num_key_value_heads=4, vocab_size=1000, max_position_embeddings=256)
        model = LlamaForCausalLM(config).cuda().half().eval()
        model.generation_config.cache_implementation = "static"
        tokens = torch.ones(1, 8, dtype=torch.long, device="cuda")
        for _ in range(2):
            model.generate(tokens, max_new_tokens=40, do_sample=False, pad_token_id=0)
    elif name == "cost":
        cost(torch, Model, x)
    torch.cuda.synchronize()


def cost(torch, Model, x):
    """Prints what capture with instantiation takes in ms, and a replay in us."""
    model, captures, replays = Model(), [], []
    model(x)
    torch.cuda.synchronize()
    for _ in range(30):
        begun = time.perf_counter()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        captures.append((time.perf_counter() - begun) * 1e3)
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(200):
            graph.replay()
        torch.cuda.synchronize()
        replays.append((time.perf_counter() - begun) * 1e6 / 200)
    print(json.dumps({"capture_ms": statistics.median(captures), "replay_us": statistics.median(replays)}))


def trace(cuptop, out, name, environment=None):
    folder, log = os.path.join(out, name), os.path.join(out, name + ".log")
    begun = time.monotonic()
    with open(log, "w") as to:
        code = subprocess.run([cuptop, "trace", "--headless", "--save", folder, sys.executable, os.path.abspath(__file__), "--run", name],
                              stdout=to, stderr=to, env={**os.environ, **(environment or {})}, timeout=200).returncode
    return folder, log, code, time.monotonic() - begun


def judge(cuptop, folder, name):
    """Nodes that ran, those with a line, that as a part of the time, and the wrong ones."""
    base = folder + ".sqlite"
    subprocess.run([cuptop, "export", folder, "-o", base], check=True, capture_output=True)
    db = sqlite3.connect(base)
    one = "coalesce(o.name, o.kind) || ' ' || coalesce(o.grid, o.bytes)"
    truth = {}
    for what, where in db.execute(
            f"SELECT {one}, r.name FROM operations o JOIN call c ON c.id = o.call_id JOIN ranges r ON r.kind = 'nvtx' AND r.thread = c.thread"
            " AND r.start_ns <= c.start_ns AND r.end_ns >= c.end_ns WHERE o.graph_node IS NULL AND r.name LIKE 'L%'"):
        truth.setdefault(what, set()).add(where)
    rows = db.execute(
        f"SELECT o.graph_node, {one}, o.end_ns - o.start_ns, g.line, g.file, g.round, g.source FROM operations o"
        " LEFT JOIN graph_node g ON g.process = o.process AND g.node = o.graph_node WHERE o.graph_node IS NOT NULL").fetchall()
    nodes = {}
    for node, what, length, line, file, round_, source in rows:
        it = nodes.setdefault((node, what), [0, line, file, round_, source])
        it[0] += length
    all_ns = sum(it[0] for it in nodes.values()) or 1
    named_ns = sum(it[0] for it in nodes.values() if it[1] is not None)
    wrong, checked = [], 0
    for (node, what), (_, line, file, round_, source) in nodes.items():
        expected = truth.get(what)
        if expected and len(expected) == 1 and line is not None:
            checked += 1
            said, layer = next(iter(expected)).split()
            is_round = round_ is None or name in ("updated", "relined") or int(layer) + 1 == round_
            if said != f"L{line}" or not is_round:
                wrong.append(f"{what[-40:]}: {source}, is {said} layer {layer}")
    sources = {}
    for (_, what), it in nodes.items():
        sources[it[4]] = sources.get(it[4], 0) + 1
    return {"nodes": len(nodes), "named": sum(it[1] is not None for it in nodes.values()), "time": named_ns / all_ns,
            "checked": checked, "wrong": wrong, "some": sorted(sources.items(), key=lambda it: -it[1])[:12]}


def main():
    if sys.argv[1] == "--run":
        return case(sys.argv[2])
    cuptop, out = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "graph-names"
    os.makedirs(out, exist_ok=True)
    asked = sys.argv[3:] or ["graph", "twice", "child", "updated", "relined", "destroyed", "callables", "compiled", "generate", "cost"]
    failed, table = 0, []
    for name in asked:
        if name == "cost":
            table.append(costs(cuptop, out))
            continue
        try:
            folder, log, code, took = trace(cuptop, out, name)
            found = judge(cuptop, folder, name)
        except Exception as error:
            failed += 1
            table.append(f"{name:10} FAILED {error}")
            continue
        is_good = code == 0 and not found["wrong"] and found["nodes"] > 0
        failed += not is_good
        table.append(f"{name:10} {'ok' if is_good else 'WRONG'} nodes {found['nodes']}, named {found['named']}, {found['time']:.1%} of the time, "
                     f"checked {found['checked']}, wrong {len(found['wrong'])}, exit {code}, {took:.1f} s")
        print(name, json.dumps(found, indent=1, ensure_ascii=False), flush=True)
        print("  ", " | ".join(l.strip() for l in open(log) if "nodes of CUDA" in l or "error" in l.lower())[:600], flush=True)
    print("\n".join(table), f"\n{failed} of {len(asked)} failed")
    return failed


def costs(cuptop, out, pairs=4):
    """Capture and replay with names beside those without, by turns."""
    found = {"": [], "graphs": []}
    for at in range(2 * pairs):
        off = ["", "graphs"][(at + at // 2) % 2]
        _, log, _, took = trace(cuptop, out, f"cost", {"CUPTOP_OFF": off})
        subprocess.run(["rm", "-rf", os.path.join(out, "cost")])
        line = next(l for l in open(log) if l.startswith('{"capture_ms"'))
        found[off].append({**json.loads(line), "whole_s": took})
    ratio = {key: statistics.median(a[key] / b[key] for a, b in zip(found[""], found["graphs"])) for key in found[""][0]}
    print(json.dumps(found, indent=1))
    return "cost       with names / without: " + ", ".join(f"{key} {value:.3f}" for key, value in ratio.items())


if __name__ == "__main__":
    sys.exit(main())
