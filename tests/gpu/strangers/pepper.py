"""Follows grains in a box that draw each other: their weight is spread over the cells, and the pull is read from there."""
import torch

import gauge

SIDE, GRAINS, SPAN = 128, 4_000_000, 0.01


def begin(seed):
    """So that each run comes out as the one before."""
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(not gauge.cured)


def around(where):
    """The two cells next to each grain along each axis, and how near it is to them."""
    low = where.floor()
    part = where - low
    cell = low.long() % SIDE
    return (cell, (cell + 1) % SIDE), (1 - part, part)


def spread(cells, shares):
    density = torch.zeros(SIDE**3, device="cuda")
    for corner in range(8):
        a, b, c = corner & 1, corner >> 1 & 1, corner >> 2
        cell = (cells[a][0] * SIDE + cells[b][1]) * SIDE + cells[c][2]
        share = shares[a][0] * shares[b][1] * shares[c][2]
        density.scatter_add_(0, cell, share)
    return density.view(SIDE, SIDE, SIDE)


def pull_of(density):
    """The pull along each axis, by way of the waves of the density."""
    waves = torch.fft.rfftn(density) / far
    return [torch.fft.irfftn(-1j * axis * waves, s=(SIDE,) * 3).flatten() for axis in axes]


def move(where, speed):
    cells, shares = around(where)
    pull = pull_of(spread(cells, shares))
    home = (cells[0][0] * SIDE + cells[0][1]) * SIDE + cells[0][2]
    for axis in range(3):
        speed[axis] += SPAN * pull[axis][home]
    where.add_(speed, alpha=SPAN).remainder_(SIDE)


begin(seed=3)
whole, half = torch.fft.fftfreq(SIDE, device="cuda"), torch.fft.rfftfreq(SIDE, device="cuda")
axes = torch.meshgrid(whole, whole, half, indexing="ij")
far = sum(axis * axis for axis in axes)
far[0, 0, 0] = 1.0
where = torch.rand(3, GRAINS, device="cuda") * SIDE
speed = torch.zeros(3, GRAINS, device="cuda")

for _ in gauge.steps(torch.cuda.synchronize, each=5):
    move(where, speed)
