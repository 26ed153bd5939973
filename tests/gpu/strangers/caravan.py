"""Reads texts of very different lengths, one after another, with two wide blocks."""
import torch
from torch import nn
from torch.nn import functional as F

import gauge

WIDTH, HEADS = 4096, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        length = x.shape[1]
        q, k, v = self.qkv(self.before(x)).view(1, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(1, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.after(x))))


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = nn.Sequential(Block(), Block()).eval()
    texts = [torch.randn(length, WIDTH) for length in (2560, 6144, 3840, 5376, 4608, 7168)]

with torch.inference_mode():
    for _ in gauge.steps(torch.cuda.synchronize, each=2, least=20):
        read = []
        for text in texts:
            read.append(model(text[None])[0, -1])
        summary = torch.stack(read)
