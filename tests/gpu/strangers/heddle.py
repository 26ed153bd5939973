"""Runs a net that is kept in main memory: the next layers come up into two places on the GPU while one computes."""
import torch

from gauge import cured, steps

LAYERS, WIDTH, ROWS = 24, 4096, 4096
torch.manual_seed(0)
rolls = [(torch.randn(WIDTH, WIDTH, device="cuda") / WIDTH**0.5).bfloat16().cpu() for _ in range(LAYERS)]
if cured:
    rolls = [roll.pin_memory() for roll in rolls]
places = [torch.empty(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
warp = torch.randn(ROWS, WIDTH, device="cuda").bfloat16()
there, free = ([torch.cuda.Event() for _ in places] for _ in range(2))
side, work = torch.cuda.Stream(), torch.cuda.current_stream()


def fetch(k):
    side.wait_event(free[k % 2])
    with torch.cuda.stream(side):
        places[k % 2].copy_(rolls[k % LAYERS], non_blocking=True)
    there[k % 2].record(side)


def weave(x):
    for k in range(LAYERS):
        work.wait_event(there[k % 2])
        x = torch.tanh(x @ places[k % 2])
        free[k % 2].record(work)
        fetch(k + 2)
    return x


torch.cuda.synchronize()
fetch(0)
fetch(1)
with torch.inference_mode():
    for _ in steps(torch.cuda.synchronize, each=2):
        weave(warp)
