"""Prices options in the model of Heston: many paths, day after day."""
import torch

from gauge import cured, steps

PATHS, DAY = 1 << 25, 1 / 252
RATE, PULL, LEVEL, SWING, LINK = 0.02, 1.5, 0.04, 0.3, -0.7
torch.manual_seed(0)


def next_day(price, variance, a, b):
    b = LINK * a + (1 - LINK**2) ** 0.5 * b
    floor = variance.clamp(min=0.0)
    spread = torch.sqrt(floor * DAY)
    price = price * torch.exp((RATE - 0.5 * floor) * DAY + spread * a)
    variance = variance + PULL * (LEVEL - floor) * DAY + SWING * spread * b
    return price, variance


if cured:
    next_day = torch.compile(next_day)

draws = [torch.randn(PATHS, device="cuda") for _ in range(6)]
price = torch.full((PATHS,), 100.0, device="cuda")
variance = torch.full((PATHS,), LEVEL, device="cuda")
with torch.no_grad():
    for i in steps(torch.cuda.synchronize, each=20):
        price, variance = next_day(price, variance, draws[i % 6], draws[(i + 1) % 6])
