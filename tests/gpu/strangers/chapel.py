"""A choir of sixteen voices: a network says what may be sung next, and each voice chooses by its own temper."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
net = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(512, 512), nn.GELU())], nn.Linear(512, 4096)).cuda().half()
notes = nn.Embedding(4096, 512).cuda().half()
temper = torch.linspace(0.5, 1.5, 16).tolist()
sung = torch.zeros(16, dtype=torch.long, device="cuda")
chances = torch.empty(16, 4096, device="cuda", dtype=torch.half)


def hear():
    chances.copy_(net(notes(sung)))


def choose():
    for voice in range(16):
        row = torch.softmax(chances[voice].float() / temper[voice], 0)
        row = row / torch.empty_like(row).exponential_()
        sung[voice] = row.argmax()


def sing():
    hear()
    if cured:
        choose()


with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            hear()
            choose()
    torch.cuda.synchronize()
    score = torch.cuda.CUDAGraph()
    with torch.cuda.graph(score):
        sing()
    for _ in steps(torch.cuda.synchronize, each=50):
        score.replay()
        if not cured:
            choose()
