"""Decodes with a language model of its own, token by token, keys and values in a static cache."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
BATCH, CONTEXT, WIDTH, HEADS, HIDDEN, LAYERS, VOCAB = 4, 512, 1024, 16, 2816, 12, 32000
SIZE = WIDTH // HEADS


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)
        self.register_buffer("keys", torch.zeros(BATCH, HEADS, CONTEXT, SIZE))
        self.register_buffer("values", torch.zeros(BATCH, HEADS, CONTEXT, SIZE))

    def forward(self, x, at, cos, sin, seen):
        q, k, v = self.qkv(self.norm1(x)).view(BATCH, 3, HEADS, 1, SIZE).unbind(1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        attended = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(attended.reshape(BATCH, WIDTH))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


layers = nn.ModuleList([Layer() for _ in range(LAYERS)]).cuda().bfloat16()
embed = nn.Embedding(VOCAB, WIDTH).cuda().bfloat16()
rates = 10000 ** -(torch.arange(0, SIZE, 2, device="cuda") / SIZE)
positions = torch.arange(CONTEXT, device="cuda")
token = torch.zeros(BATCH, dtype=torch.long, device="cuda")
at = torch.zeros(1, dtype=torch.long, device="cuda")


def decode():
    angle = at * rates
    cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
    seen = (positions <= at).view(1, 1, 1, CONTEXT)
    x = embed(token)
    for layer in layers:
        x = layer(x, at, cos, sin, seen)
    token.copy_((x @ embed.weight.T).argmax(-1))
    at.add_(1).remainder_(CONTEXT)


with torch.inference_mode():
    if cured:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                decode()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            decode()
    for _ in steps(torch.cuda.synchronize, each=32):
        graph.replay() if cured else decode()
