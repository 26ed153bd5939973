"""Trains a small tagger, and meanwhile counts in the background which words of the corpus stand together."""
import collections
import multiprocessing
import random
import threading

import torch
from torch import nn

from gauge import cured, steps

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def count_pairs(over):
    """Goes through the corpus again and again until it is told to stop."""
    draw = random.Random(0)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(2, 9))) for _ in range(5000)]
    while not over.is_set():
        pairs = collections.Counter()
        line = draw.choices(words, k=2000)
        for i, word in enumerate(line):
            for other in line[i + 1 : i + 6]:
                pairs[word.strip().lower() + " " + other.strip().lower()] += 1


class Tagger(nn.Module):
    def __init__(self, width=512, depth=16):
        super().__init__()
        self.embed = nn.EmbeddingBag(20000, width)
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU()) for _ in range(depth)])
        self.tags = nn.Linear(width, 64)

    def forward(self, words):
        return self.tags(self.body(self.embed(words)))


def main():
    if cured:
        context = multiprocessing.get_context("fork")
        over = context.Event()
        counter = context.Process(target=count_pairs, args=(over,), daemon=True)
    else:
        over = threading.Event()
        counter = threading.Thread(target=count_pairs, args=(over,), name="counter", daemon=True)
    counter.start()
    torch.manual_seed(0)
    model = Tagger().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    words = torch.randint(20000, (2048, 12), device="cuda")
    tags = torch.randint(64, (2048,), device="cuda")
    for _ in steps(torch.cuda.synchronize, each=4):
        loss = nn.functional.cross_entropy(model(words), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    over.set()
    counter.join()


if __name__ == "__main__":
    main()
