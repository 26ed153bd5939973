"""Listens to 128 sounds of the shore, with gates that open and close."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
ear = nn.GRU(256, 256).cuda().eval()
sounds = torch.randn(128, 32, 256, device="cuda")


def hear(h, sound):
    gates = sound @ ear.weight_ih_l0.T + ear.bias_ih_l0
    memory = h @ ear.weight_hh_l0.T + ear.bias_hh_l0
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_held, z_held, n_held = memory.chunk(3, 1)
    r = torch.sigmoid(r_in + r_held)
    z = torch.sigmoid(z_in + z_held)
    n = torch.tanh(n_in + r * n_held)
    return (1 - z) * n + z * h


@torch.no_grad()
def listen():
    if cured:
        return ear(sounds)[1]
    h = torch.zeros(32, 256, device="cuda")
    for sound in sounds:
        h = hear(h, sound)
    return h


for _ in steps(torch.cuda.synchronize, each=20):
    listen()
