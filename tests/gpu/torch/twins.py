#!/usr/bin/env python3
"""Eight more programs, each with a mistake and without, which nothing in cuptop was fitted to: see pairs.py.

usage: twins.py --all DIR [--rounds R] [--steps N] [NAME…]      (all programs without a name)
       twins.py --list

Every program takes its turns in one process, the mistake and its cure side by side in every round, and leaves
DIR/NAME-mistake.ROUND.json.gz and DIR/NAME-cure.ROUND.json.gz with N steps each. DIR/walls.json has what a step of each turn
took by the host's clock, while it was recorded: a check of what is read from the traces.
"""
import argparse
import json
import pathlib
import time

# By program: the edit that turns the mistake into its cure.
EDITS = {
    "lm": "pin+async+no-sync+fuse@Optimizer.step#AdamW.step",
    "decode": "graph",
    "workers": "prefetch:load=4",
    "pageable": "pin+async",
    "item": "no-sync",
    "optimizer": "fuse@Optimizer.step#Adam.step",
    "small_copies": "merge-copies@upload",
    "streams": "own-stream",
}


def programs():
    """By name a function of whether it is cured, which makes the program and returns a function of one step."""
    import torch
    from torch import nn
    from torch.profiler import record_function as part

    def blocks(width, layers, **more):
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, **more)
        return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def lm(cured):
        """Trains a small language model on sequences of 256 tokens; the loss is fetched in every step."""
        torch.manual_seed(1)
        embed, body, head = nn.Embedding(8192, 256).cuda(), blocks(256, 3).cuda(), nn.Linear(256, 8192).cuda()
        all_of_it = [p for net in (embed, body, head) for p in net.parameters()]
        optimizer = torch.optim.AdamW(all_of_it, lr=1e-4, **(dict(fused=True) if cured else dict(foreach=False)))
        tokens = torch.randint(8192, (16, 257))
        tokens = tokens.pin_memory() if cured else tokens
        mask = nn.Transformer.generate_square_subsequent_mask(256, device="cuda")
        seen = [0.0]

        def step():
            there = tokens.to("cuda", non_blocking=cured)
            optimizer.zero_grad(set_to_none=True)
            out = head(body(embed(there[:, :-1]), mask=mask, is_causal=True))
            loss = nn.functional.cross_entropy(out.flatten(0, 1), there[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            if not cured:
                seen[0] += loss.item()

        return step

    def decode(cured):
        """Decodes a token a step with a cache of fixed size; the host reads each token."""
        torch.manual_seed(2)
        width, heads, length, depth = 512, 8, 512, 8
        with torch.no_grad():
            embed = torch.randn(8192, width, device="cuda") * 0.02
            layers = [[torch.randn(a, b, device="cuda") * 0.02 for a, b in ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))] for _ in range(depth)]
            caches = [torch.zeros(2, heads, length, width // heads, device="cuda") for _ in range(depth)]
            token, place = torch.zeros(1, dtype=torch.long, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")

        @torch.no_grad()
        def run():
            x = embed[token]
            for (qkv, out, up, down), cache in zip(layers, caches):
                q, k, v = (nn.functional.layer_norm(x, (width,)) @ qkv).view(3, heads, 1, -1)
                cache[0].index_copy_(1, place, k)
                cache[1].index_copy_(1, place, v)
                seen = ((q @ cache[0].transpose(1, 2)) * 0.125).softmax(-1) @ cache[1]
                x = x + seen.reshape(1, width) @ out
                x = x + nn.functional.gelu(nn.functional.layer_norm(x, (width,)) @ up) @ down
            token.copy_((x @ embed.t()).argmax(-1))
            place.add_(1).remainder_(length)

        graph = None
        if cured:
            side = torch.cuda.Stream()
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                for _ in range(3):
                    run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()

        def step():
            (graph.replay if graph else run)()
            return token.item()

        return step

    class Samples(torch.utils.data.Dataset):
        """A sample takes a quarter of a millisecond of the processor."""

        def __len__(self):
            return 1 << 20

        def __getitem__(self, i):
            end = time.perf_counter() + 250e-6
            while time.perf_counter() < end:
                pass
            return torch.full((2048,), float(i % 5))

    def workers(cured):
        """A data loader with two workers, or with eight."""
        torch.manual_seed(3)
        loader = torch.utils.data.DataLoader(Samples(), batch_size=32, num_workers=8 if cured else 2, prefetch_factor=1, pin_memory=False)
        batches = iter(loader)
        net = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), *[nn.Linear(4096, 4096) for _ in range(2)]).cuda()
        again = torch.ones(16, 1, 1, device="cuda")

        @torch.no_grad()
        def step():
            with part("load"):
                x = next(batches)
            net(x.to("cuda") * again).sum().item()

        return step

    def pageable(cured):
        """Uploads 32 MiB a step, from pageable memory by a blocking copy or from pinned memory."""
        torch.manual_seed(4)
        host = torch.rand(2048, 4096)
        host = host.pin_memory() if cured else host
        net = nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(3)]).cuda()

        @torch.no_grad()
        def step():
            return net(host.to("cuda", non_blocking=cured)).amax()

        return step

    def item(cured):
        """Trains a small network; the loss is fetched in every step, or kept on the GPU."""
        torch.manual_seed(5)
        net = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(12)]).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, foreach=True)
        x, seen = torch.rand(1024, 1024, device="cuda"), [torch.zeros((), device="cuda")]

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            seen[0] = seen[0] + loss.detach() if cured else loss.item()

        return step

    def optimizer(cured):
        """Trains a convolutional network of many small parameters: Adam with a kernel for each operation, or one for all."""
        torch.manual_seed(6)
        net = nn.Sequential(*[nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()) for _ in range(20)], nn.Flatten(), nn.Linear(32 * 16 * 16, 10)).cuda()
        x = torch.rand(32, 32, 16, 16, device="cuda")
        it = torch.optim.Adam(net.parameters(), lr=1e-4, **(dict(fused=True) if cured else dict(foreach=False)))

        def step():
            it.zero_grad(set_to_none=True)
            net(x).square().mean().backward()
            it.step()

        return step

    def small_copies(cured):
        """Uploads 300 rows of 4 KiB one by one, or as one block."""
        rows = [torch.rand(1024).pin_memory() for _ in range(300)]
        whole = torch.rand(300, 1024).pin_memory()
        there, weights = torch.empty(300, 1024, device="cuda"), torch.rand(1024, 8192, device="cuda")

        @torch.no_grad()
        def step():
            with part("upload"):
                if cured:
                    there.copy_(whole, non_blocking=True)
                else:
                    for i, row in enumerate(rows):
                        there[i].copy_(row, non_blocking=True)
            (there @ weights).softmax(-1).amax().item()

        return step

    def streams(cured):
        """Eight batches, each uploaded, multiplied and downloaded: on one stream, or on two in turn."""
        hosts = [torch.rand(1024, 2048).pin_memory() for _ in range(8)]
        outs = [torch.empty(1024, 2048).pin_memory() for _ in range(8)]
        weights = torch.rand(2048, 2048, device="cuda")
        turns = [torch.cuda.Stream() for _ in range(2 if cured else 1)]

        @torch.no_grad()
        def step():
            for i, (host, out) in enumerate(zip(hosts, outs)):
                with torch.cuda.stream(turns[i % len(turns)]):
                    x = host.to("cuda", non_blocking=True)
                    out.copy_(x @ weights @ weights, non_blocking=True)
            torch.cuda.synchronize()

        return step

    made = [lm, decode, workers, pageable, item, optimizer, small_copies, streams]
    return {program.__name__: program for program in made}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        for name, edit in EDITS.items():
            print(f"{name:14} {edit}")
        return
    import pairs

    args.all.mkdir(parents=True, exist_ok=True)
    began, walls = time.monotonic(), {}
    for name, program in programs().items():
        if args.names and name not in args.names:
            continue
        # A program that does not run leaves the others theirs.
        try:
            steps = {f"{name}-mistake": program(False), f"{name}-cure": program(True)}
            walls |= pairs.take_turns(steps, args.all, args.rounds, args.steps)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        (args.all / "walls.json").write_text(json.dumps(walls, indent=1))
        print(f"{name}: {time.monotonic() - began:.0f} s so far", flush=True)


if __name__ == "__main__":
    main()
