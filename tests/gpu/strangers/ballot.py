"""Adds up how much weight the votes for each of sixteen parties have."""
import torch
import triton
import triton.language as tl

from gauge import cured, steps

VOTES, PARTIES, WIDE, CHUNKS = 1 << 25, 16, 512, 32


@triton.jit
def tally(votes, weights, sums, PARTIES: tl.constexpr, WIDE: tl.constexpr, CHUNKS: tl.constexpr):
    begin = tl.program_id(0) * WIDE * CHUNKS
    for chunk in range(CHUNKS):
        at = begin + chunk * WIDE + tl.arange(0, WIDE)
        vote = tl.load(votes + at).to(tl.int32)
        weight = tl.load(weights + at)
        tl.atomic_add(sums + vote, weight)


@triton.jit
def tally_first_here(votes, weights, sums, PARTIES: tl.constexpr, WIDE: tl.constexpr, CHUNKS: tl.constexpr):
    begin = tl.program_id(0) * WIDE * CHUNKS
    party = tl.arange(0, PARTIES)
    mine = tl.zeros((PARTIES,), tl.float32)
    for chunk in range(CHUNKS):
        at = begin + chunk * WIDE + tl.arange(0, WIDE)
        vote = tl.load(votes + at).to(tl.int32)
        weight = tl.load(weights + at)
        mine += tl.sum(tl.where(vote[:, None] == party[None, :], weight[:, None], 0.0), 0)
    tl.atomic_add(sums + party, mine)


torch.manual_seed(0)
votes = torch.randint(PARTIES, (VOTES,), device="cuda", dtype=torch.uint8)
weights = torch.rand(VOTES, device="cuda")
sums = torch.empty(PARTIES, device="cuda")
count = tally_first_here if cured else tally
for _ in steps(torch.cuda.synchronize, each=10):
    sums.zero_()
    count[(VOTES // (WIDE * CHUNKS),)](votes, weights, sums, PARTIES, WIDE, CHUNKS)
