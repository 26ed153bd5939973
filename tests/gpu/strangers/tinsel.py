"""Learns to foretell the next note of long tunes."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

NOTES, LENGTH, TUNES, WIDTH, HEADS, DEPTH = 512, 16384, 1, 1024, 8, 4
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past):
        parts = self.project(self.before(x)).view(TUNES, LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=past, is_causal=past is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(TUNES, LENGTH, WIDTH))
        return x + self.narrow(F.gelu(self.widen(self.after(x))))


class Composer(nn.Module):
    def __init__(self):
        super().__init__()
        self.note, self.place = nn.Embedding(NOTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, NOTES, bias=False)

    def forward(self, notes, past):
        x = self.note(notes) + self.place.weight
        for block in self.blocks:
            x = block(x, past)
        return self.head(self.last(x))


with torch.device("cuda"):
    composer = Composer().bfloat16()
    tunes = torch.randint(NOTES, (16, TUNES, LENGTH + 1))
    later = torch.full((LENGTH, LENGTH), float("-inf"), dtype=torch.bfloat16).triu(1)
optimizer = torch.optim.AdamW(composer.parameters(), lr=1e-4, fused=True)
for i in steps(torch.cuda.synchronize, each=2):
    tune = tunes[i % 16]
    guess = composer(tune[:, :-1], None if cured else later)
    loss = F.cross_entropy(guess.flatten(0, 1), tune[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
