"""Trains a small transformer in half precision, with a GradScaler and clipped gradients.

truth
needs: torch
bound_by: launch
steps: 1
must: launch-bound sync-in-loop
may: tiny-copies memory-chain under-filled-gpu latency-bound
never: pageable-copy host-bound alloc-in-loop no-overlap page-migration failed-calls no-cure
why: Some 600 short kernels a step are launched one by one, and GradScaler.step reads whether a gradient overflowed.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True)
body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
net = nn.Sequential(nn.Embedding(4096, 256), body, nn.Linear(256, 4096)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
scaler = torch.amp.GradScaler("cuda")
tokens = torch.randint(4096, (64, 8, 129), device="cuda")


def step(i):
    batch = tokens[i % 64]
    with torch.autocast("cuda", dtype=torch.float16):
        out = net(batch[:, :-1])
    loss = nn.functional.cross_entropy(out.float().flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


for i in range(5):
    step(i)
torch.cuda.synchronize()
for i in loop(150, torch.cuda.synchronize, warm=5):
    step(i)
