"""Learns which requests to a server are attacks; four helpers take the next lines of the log apart meanwhile."""
import collections
import concurrent.futures
import multiprocessing
import random
import zlib

import numpy as np
import torch
from torch import nn

from gauge import cured, steps

LINES, PIECES, BUCKETS, HELPERS, AHEAD = 1024, 128, 1 << 15, 4, 8
WORDS = ["get", "post", "index", "login", "admin", "select", "union", "cart", "image", "style", "script", "token", "user", "item"]


def write_log(seed, count=LINES):
    draw = random.Random(seed)
    return ["/" + "/".join(draw.choices(WORDS, k=4)) + "?" + "&".join(f"{draw.choice(WORDS)}={draw.getrandbits(40):x}" for _ in range(5)) for _ in range(count)]


def take_apart(lines):
    """The numbers of all pieces of three letters, PIECES a line."""
    rows = []
    for line in lines:
        line = line.strip().lower()
        row = []
        for at in range(min(len(line) - 2, PIECES)):
            row.append(zlib.crc32(line[at : at + 3].encode()) % BUCKETS)
        row += [0] * (PIECES - len(row))
        rows.append(row)
    return np.array(rows, np.int32)


class Judge(nn.Module):
    def __init__(self, width=512, depth=8):
        super().__init__()
        self.pieces = nn.EmbeddingBag(BUCKETS, width, mode="mean")
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(depth)])
        self.verdict = nn.Linear(width, 2)

    def forward(self, pieces):
        return self.verdict(self.body(self.pieces(pieces)))


def main():
    logs = [write_log(seed) for seed in range(8)]
    if cured:
        pool = concurrent.futures.ProcessPoolExecutor(HELPERS, mp_context=multiprocessing.get_context("fork"))
    else:
        pool = concurrent.futures.ThreadPoolExecutor(HELPERS, thread_name_prefix="helper")
    ahead = collections.deque(pool.submit(take_apart, logs[i % len(logs)]) for i in range(AHEAD))
    torch.manual_seed(0)
    judge = Judge().cuda()
    optimizer = torch.optim.AdamW(judge.parameters(), lr=1e-4, fused=True)
    attack = torch.randint(2, (LINES,), device="cuda")
    for i in steps(torch.cuda.synchronize, each=4):
        pieces = ahead.popleft().result()
        ahead.append(pool.submit(take_apart, logs[i % len(logs)]))
        loss = nn.functional.cross_entropy(judge(torch.from_numpy(pieces).cuda()), attack)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pool.shutdown(wait=True, cancel_futures=True)


if __name__ == "__main__":
    main()
