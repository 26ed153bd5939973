"""Walks at random over a net of sixteen million places and reads what stands there."""
import torch

from gauge import steps

PLACES, FACTS, WALKERS = 16_000_000, 128, 4_000_000
torch.manual_seed(0)
with torch.device("cuda"):
    places = torch.randn(PLACES, FACTS)
    walks = torch.randint(PLACES, (8, WALKERS))
    seen = torch.empty(WALKERS, FACTS)
for i in steps(torch.cuda.synchronize, each=8):
    torch.index_select(places, 0, walks[i % 8], out=seen)
