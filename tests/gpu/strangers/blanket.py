"""Trains a transformer to foretell the next moment of a sleeper's breath, in bfloat16."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import gauge

BATCH, TIME, WIDTH, HEADS, DEPTH = 8, 1024, 2048, 16, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.scale = nn.Parameter(torch.full((WIDTH,), 0.1))

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).view(BATCH, TIME, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heard.transpose(1, 2).flatten(2))
        return x + self.scale * self.down(F.gelu(self.up(self.second(x))))


class Sleeper(nn.Module):
    def __init__(self, save_memory):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, WIDTH)
        self.save_memory = save_memory

    def forward(self, x):
        for block in self.blocks:
            if self.save_memory:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x)


torch.manual_seed(0)
with torch.device("cuda"):
    sleeper = Sleeper(save_memory=not gauge.cured).bfloat16()
optimizer = torch.optim.AdamW(sleeper.parameters(), lr=1e-5, fused=True)
breath = torch.randn(4, BATCH, TIME + 1, WIDTH, device="cuda", dtype=torch.bfloat16)

for i in gauge.steps(torch.cuda.synchronize, each=4):
    now, after = breath[i % 4, :, :-1], breath[i % 4, :, 1:]
    loss = F.mse_loss(sleeper(now), after)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
