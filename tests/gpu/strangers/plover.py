"""Goes on writing sixty-four stories, a word each at a time."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from gauge import cured, steps

WORDS, STORIES, HEADS, SIZE, DEPTH, BEGUN, MORE = 8192, 64, 16, 128, 4, 4096, 32
WIDTH = HEADS * SIZE
torch.manual_seed(0)


class Shelf:
    """What one layer has seen of each story."""

    def __init__(self, keys, values):
        self.start = self.keys, self.values = keys, values
        if cured:
            self.keys, self.values = (F.pad(part, (0, 0, 0, MORE)) for part in self.start)
        self.clear()

    def clear(self):
        self.filled = BEGUN
        if not cured:
            self.keys, self.values = self.start

    def add(self, k, v):
        self.filled += 1
        if cured:
            self.keys[:, :, self.filled - 1 : self.filled] = k
            self.values[:, :, self.filled - 1 : self.filled] = v
        else:
            self.keys = torch.cat([self.keys, k], 2)
            self.values = torch.cat([self.values, v], 2)
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, shelf):
        q, k, v = (part.view(STORIES, HEADS, 1, SIZE) for part in self.project(self.before(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, *shelf.add(k, v)).reshape(STORIES, WIDTH))
        return x + self.narrow(F.gelu(self.widen(self.after(x))))


with torch.device("cuda"):
    embed = nn.Embedding(WORDS, WIDTH).bfloat16()
    layers = nn.ModuleList(Layer() for _ in range(DEPTH)).bfloat16()
    head = nn.Linear(WIDTH, WORDS, bias=False).bfloat16()
    shelves = [Shelf(*torch.randn(2, STORIES, HEADS, BEGUN, SIZE, dtype=torch.bfloat16).unbind(0)) for _ in range(DEPTH)]
    word = torch.randint(WORDS, (STORIES,))

with torch.inference_mode(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    for i in steps(torch.cuda.synchronize, each=8, warm=2 * MORE):
        if i % MORE == 0:
            for shelf in shelves:
                shelf.clear()
        x = embed(word)
        for layer, shelf in zip(layers, shelves):
            x = layer(x, shelf)
        word = head(x).argmax(-1)
