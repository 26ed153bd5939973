#!/usr/bin/env python3
"""A few all-reduces for torchrun: `torchrun --nproc_per_node 2 ddp.py`."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
x = torch.ones(1 << 22, device="cuda")
for _ in range(20):
    y = x @ x.new_ones(1 << 22)
    dist.all_reduce(x)
    x /= dist.get_world_size()
torch.cuda.synchronize()
print(f"rank {rank}: sum {x.sum().item():.0f}, dot {y.item():.0f}")
dist.destroy_process_group()
