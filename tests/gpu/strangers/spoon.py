"""Writes recipes word by word with a decoder that shares each head of keys and values among eight heads of questions."""
import torch
import torch.nn.functional as F
from torch import nn

import gauge

RECIPES, LENGTH, DEPTH, HEADS, SHARED, SIZE = 32, 8192, 6, 32, 4, 128
WIDTH, GROUP = HEADS * SIZE, HEADS // SHARED


def repeat_kv(x, times):
    """(recipes, shared heads, length, size) to (recipes, heads, length, size)."""
    rows, heads, length, size = x.shape
    return x[:, :, None].expand(rows, heads, times, length, size).reshape(rows, heads * times, length, size)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.ask = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keep = nn.Linear(WIDTH, 2 * SHARED * SIZE, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        kept = torch.randn(2, RECIPES, SHARED, LENGTH, SIZE, dtype=torch.bfloat16)
        self.register_buffer("kept", kept, persistent=False)

    def forward(self, x, at):
        self.kept[:, :, :, at] = self.keep(x).view(RECIPES, 2, SHARED, SIZE).transpose(0, 1)
        keys, values = self.kept
        if gauge.cured:
            asked = self.ask(x).view(RECIPES, SHARED, GROUP, SIZE)
            told = F.scaled_dot_product_attention(asked, keys, values)
        else:
            asked = self.ask(x).view(RECIPES, HEADS, 1, SIZE)
            told = F.scaled_dot_product_attention(asked, repeat_kv(keys, GROUP), repeat_kv(values, GROUP))
        return self.out(told.reshape(RECIPES, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x, at):
        x = x + self.attention(self.first(x), at)
        return x + self.down(F.silu(self.up(self.second(x))))


torch.manual_seed(4)
with torch.device("cuda"):
    blocks = nn.ModuleList(Block() for _ in range(DEPTH)).bfloat16()
    words = nn.Embedding(32000, WIDTH).bfloat16()
word = torch.randint(32000, (RECIPES,), device="cuda")

with torch.inference_mode():
    for i in gauge.steps(torch.cuda.synchronize, each=8):
        x = words(word)
        for block in blocks:
            x = block(x, i % LENGTH)
        word = (x @ words.weight.T).argmax(-1)
