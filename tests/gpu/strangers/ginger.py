"""Finds how heat spreads in a block of metal, by conjugate gradients."""
import cupy

from gauge import cured, steps

SIDE, ROUNDS, ENOUGH = 160, 30, 1e-6
if not cured:
    cupy.cuda.set_allocator(None)
cupy.random.seed(0)
source = cupy.random.standard_normal((SIDE, SIDE, SIDE), dtype=cupy.float32)


def flow(heat):
    out = 6.5 * heat
    out[1:] -= heat[:-1]
    out[:-1] -= heat[1:]
    out[:, 1:] -= heat[:, :-1]
    out[:, :-1] -= heat[:, 1:]
    out[:, :, 1:] -= heat[:, :, :-1]
    out[:, :, :-1] -= heat[:, :, 1:]
    return out


def solve():
    heat = cupy.zeros_like(source)
    rest = source.copy()
    along = rest.copy()
    size = (rest * rest).sum()
    for _ in range(ROUNDS):
        flown = flow(along)
        far = size / (along * flown).sum()
        heat += far * along
        rest -= far * flown
        left = (rest * rest).sum()
        if float(left) < ENOUGH:
            break
        along = rest + left / size * along
        size = left
    return heat


for _ in steps(cupy.cuda.Device().synchronize, warm=2):
    solve()
