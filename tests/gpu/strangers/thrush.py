"""Trains a small mixer, and keeps a book of how the values behind each layer are spread."""
import numpy as np
import torch
from torch import nn

from gauge import cured, steps

WIDTH, ROWS, DEPTH, BINS, EDGE = 1024, 512, 8, 64, 4.0
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widen, self.narrow = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm(x))))


def watch(layer, name):
    books[name] = torch.zeros(BINS, device="cuda") if cured else np.zeros(BINS)

    def note(module, inputs, output):
        values = output.detach().float()
        if cured:
            books[name] += torch.histc(values, BINS, -EDGE, EDGE)
        else:
            books[name] += np.histogram(values.cpu().numpy(), BINS, (-EDGE, EDGE))[0]

    layer.register_forward_hook(note)


books = {}
with torch.device("cuda"):
    model = nn.Sequential(*[Layer() for _ in range(DEPTH)]).bfloat16()
for number, layer in enumerate(model):
    watch(layer, f"layer {number}")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
heard, wanted = torch.randn(2, ROWS, WIDTH, device="cuda").bfloat16()
for _ in steps(torch.cuda.synchronize, each=2):
    loss = nn.functional.mse_loss(model(heard), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
