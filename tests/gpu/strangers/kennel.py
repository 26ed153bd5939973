"""Learns to tell dogs apart; helpers in processes of their own cut and turn the pictures, some batches ahead."""
import collections
import multiprocessing

import numpy
import torch
from torch import nn

import gauge

DOGS, SIDE, CUT, BATCH, KINDS, HELPERS, AHEAD = 400, 256, 224, 64, 120, 12, 16
SHAPE = (BATCH, 3, CUT, CUT)

album = numpy.random.default_rng(0).integers(0, 256, (DOGS, 3, SIDE, SIDE), dtype=numpy.uint8)
forking = multiprocessing.get_context("fork")
slots = [numpy.frombuffer(forking.RawArray("f", BATCH * 3 * CUT * CUT), numpy.float32).reshape(SHAPE) for _ in range(AHEAD)] if gauge.cured else []


def cut(number, into):
    """Fills a batch with parts of pictures, some of them mirrored."""
    rng = numpy.random.default_rng(number)
    for picture in into:
        top, left = rng.integers(0, SIDE - CUT, 2)
        part = album[rng.integers(DOGS), :, top : top + CUT, left : left + CUT]
        picture[...] = part[..., ::-1] if rng.random() < 0.5 else part
    into -= 128.0
    into /= 64.0


def prepare(number):
    pictures = numpy.empty(SHAPE, numpy.float32)
    cut(number, pictures)
    return pictures


def prepare_slot(number):
    cut(number, slots[number % AHEAD])
    return number % AHEAD


class Batches:
    def __init__(self, pool):
        self.pool, self.number, self.coming = pool, 0, collections.deque()
        for _ in range(AHEAD):
            self.ask()

    def ask(self):
        self.coming.append(self.pool.apply_async(prepare_slot if gauge.cured else prepare, (self.number,)))
        self.number += 1

    def next(self):
        ready = self.coming.popleft().get()
        pictures = torch.from_numpy(slots[ready] if gauge.cured else ready).cuda()
        self.ask()
        return pictures

    def end(self):
        for batch in self.coming:
            batch.wait()
        self.pool.close()
        self.pool.join()


batches = Batches(forking.Pool(HELPERS))
part = lambda a, b: (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU())
net = nn.Sequential(*part(3, 64), *part(64, 128), *part(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, KINDS)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
kinds = torch.randint(KINDS, (BATCH,), device="cuda")

for _ in gauge.steps(torch.cuda.synchronize):
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(net(batches.next()), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
batches.end()
