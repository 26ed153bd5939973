"""Scores texts with a decoder of six blocks."""
import torch
from torch import nn
from torch.nn import functional as F

import gauge

WIDTH, HEADS, LENGTH, TEXTS, WORDS = 1024, 16, 2048, 4, 8192


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, x):
        texts, length, _ = x.shape
        q, k, v = self.qkv(x).view(texts, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        where = x.device if gauge.cured else "cpu"
        mask = torch.full((length, length), float("-inf"), device=where).triu(1).to(x.device, x.dtype)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(seen.transpose(1, 2).reshape(texts, length, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.mlp(self.after(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(6)])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        return self.head(self.blocks(self.words(text)))


model = Decoder().cuda().bfloat16().eval()
texts = torch.randint(0, WORDS, (16, TEXTS, LENGTH), device="cuda")
score = torch.zeros((), device="cuda")

with torch.inference_mode():
    for i in gauge.steps(torch.cuda.synchronize, each=4):
        text = texts[i % len(texts)]
        score += F.cross_entropy(model(text)[:, :-1].flatten(0, 1), text[:, 1:].flatten())
