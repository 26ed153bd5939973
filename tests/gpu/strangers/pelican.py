"""Looks for the likest of all that was ever seen, which is kept in main memory and comes up part by part."""
import torch

from gauge import steps

PARTS, ROWS, WIDTH, ASKED = 12, 16384, 1024, 32768
torch.manual_seed(0)
kept = [torch.randn(ROWS, WIDTH, device="cuda").bfloat16().cpu().pin_memory() for _ in range(PARTS)]
beak = [torch.empty(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
asked = torch.randn(ASKED, WIDTH, device="cuda").bfloat16()
there, free = ([torch.cuda.Event() for _ in beak] for _ in range(2))
side, work = torch.cuda.Stream(), torch.cuda.current_stream()


def fetch(k):
    side.wait_event(free[k % 2])
    with torch.cuda.stream(side):
        beak[k % 2].copy_(kept[k % PARTS], non_blocking=True)
    there[k % 2].record(side)


def look():
    likest = torch.full((ASKED,), -1e9, device="cuda", dtype=torch.bfloat16)
    for k in range(PARTS):
        work.wait_event(there[k % 2])
        likest = torch.maximum(likest, (asked @ beak[k % 2].T).amax(1))
        free[k % 2].record(work)
        fetch(k + 2)
    return likest


torch.cuda.synchronize()
fetch(0)
fetch(1)
with torch.inference_mode():
    for _ in steps(torch.cuda.synchronize, each=2):
        look()
