"""Trains a transformer in bfloat16 and steps the optimizer after every eighth small batch.

truth
needs: torch
bound_by: compute
steps: 1 8
must:
may: memory-chain latency-bound tail-wave idle-tensor-cores
never: launch-bound sync-in-loop host-bound pageable-copy alloc-in-loop no-overlap tiny-copies no-cure
why: A small batch keeps the GPU busy for several times what its launches take, and nothing waits. A small batch may be told as the step.
"""
import torch
from torch import nn

from stamp import loop

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
net = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().bfloat16()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
batches = torch.randn(8, 32, 256, 1024, device="cuda", dtype=torch.bfloat16)


def step():
    optimizer.zero_grad(set_to_none=True)
    for batch in batches:
        loss = net(batch).float().square().mean() / 8
        loss.backward()
    optimizer.step()


for _ in range(2):
    step()
torch.cuda.synchronize()
for _ in loop(25, torch.cuda.synchronize, by="mean", warm=2):
    step()
