"""Sharpens pictures of the moon, sixteen at a time: what changes fast from point to point is made stronger."""
import cupy as cp

from gauge import cured, steps

PICTURES, TOGETHER, SIDE = 32, 16, 2048
pictures = cp.random.default_rng(0).random((PICTURES, SIDE, SIDE), dtype=cp.float32)
taper = cp.outer(cp.hanning(SIDE), cp.hanning(SIDE))
boost = 1 + 6 * cp.hypot(cp.fft.fftfreq(SIDE)[:, None], cp.fft.rfftfreq(SIDE))
if cured:
    taper, boost = taper.astype(cp.float32), boost.astype(cp.float32)


def sharpen(some):
    waves = cp.fft.rfft2(some * taper)
    waves *= boost
    return cp.fft.irfft2(waves, s=(SIDE, SIDE))


for i in steps(cp.cuda.Device().synchronize, each=8):
    at = i * TOGETHER % PICTURES
    sharp = sharpen(pictures[at : at + TOGETHER])
