"""Brings parcels up, opens them, and takes what was in them home again, on three streams."""
import torch

from gauge import steps

torch.manual_seed(0)
knife = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 0.015
parcels = [torch.randn(4096, 4096).bfloat16().pin_memory() for _ in range(3)]
homes = [torch.empty(4096, 4096, dtype=torch.bfloat16, pin_memory=True) for _ in range(3)]
up, down, work = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()


def bring(i):
    with torch.cuda.stream(up):
        return parcels[i % 3].to("cuda", non_blocking=True)


def take_home(i, parcel):
    down.wait_stream(work)
    parcel.record_stream(down)
    with torch.cuda.stream(down):
        homes[i % 3].copy_(parcel, non_blocking=True)


def deliver(i, parcel):
    work.wait_stream(up)
    parcel.record_stream(work)
    for _ in range(16):
        parcel = torch.tanh(parcel @ knife)
    take_home(i, parcel)


ahead = bring(0)
for i in steps(torch.cuda.synchronize, each=30):
    now, ahead = ahead, bring(i + 1)
    deliver(i, now)
