"""Serves a mixture of experts: each token is sent to the expert that the gate prefers."""
import torch
import torch.nn.functional as F
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
TOKENS, WIDTH, HIDDEN, EXPERTS, ROOM = 2048, 1024, 2048, 32, 256


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) / WIDTH**0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) / HIDDEN**0.5)

    def forward(self, x):
        weight, choice = self.gate(x).softmax(-1).max(-1)
        mix = self.grouped(x, choice) if cured else self.looped(x, choice)
        return F.layer_norm(x + mix * weight[:, None], (WIDTH,))

    def looped(self, x, choice):
        out = torch.zeros_like(x)
        for e in range(EXPERTS):
            mine = choice == e
            if mine.any():
                out[mine] = F.gelu(x[mine] @ self.up[e]) @ self.down[e]
        return out

    def grouped(self, x, choice):
        """Every expert has room for so many tokens; those beyond it go to a row that nobody reads."""
        place = (F.one_hot(choice, EXPERTS).cumsum(0) - 1).gather(1, choice[:, None]).squeeze(1)
        row = torch.where(place < ROOM, choice * ROOM + place, EXPERTS * ROOM)
        sent = x.new_zeros(EXPERTS * ROOM + 1, WIDTH)
        sent[row] = x
        back = F.gelu(sent[:-1].view(EXPERTS, ROOM, WIDTH) @ self.up) @ self.down
        return F.pad(back.flatten(0, 1), (0, 0, 0, 1))[row]


model = nn.Sequential(*[Mixture() for _ in range(4)]).cuda().bfloat16().eval()
prompt = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
with torch.inference_mode():
    for _ in steps(torch.cuda.synchronize, each=10):
        model(prompt)
