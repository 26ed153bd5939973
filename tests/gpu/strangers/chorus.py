"""Trains a hundred and twenty-eight small networks side by side, that foretell the same thing together."""
import torch
from torch import nn

import gauge

VOICES, KEYS, WIDTH, ROWS = 128, 16, 64, 256
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Voice(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.middle, self.high = nn.Linear(KEYS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)


voices = nn.ModuleList(Voice() for _ in range(VOICES)).cuda()
weights = list(voices.parameters())
optimizer = torch.optim.AdamW(weights, lr=1e-3, fused=True)
x = torch.randn(VOICES, ROWS, KEYS, device="cuda")
y = torch.randn(VOICES, ROWS, 1, device="cuda")


def sing(x, part):
    """All voices' layers of a name at once."""
    layers = [getattr(voice, part) for voice in voices]
    weight = torch.stack([layer.weight for layer in layers])
    bias = torch.stack([layer.bias for layer in layers])
    return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))


for _ in gauge.steps(torch.cuda.synchronize, each=10):
    heard = sing(torch.tanh(sing(torch.tanh(sing(x, "low")), "middle")), "high")
    loss = nn.functional.smooth_l1_loss(heard, y, reduction="sum")
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 1.0, foreach=gauge.cured)
    optimizer.step()
