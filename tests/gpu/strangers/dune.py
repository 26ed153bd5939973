"""Finds the pitch of recordings: each is windowed, transformed, filtered, and correlated with itself."""
import cupy as cp

from gauge import cured, steps

COUNT, LENGTH, RATE, BATCH = 256, 8192, 16000, 256 if cured else 1
cp.random.seed(0)
recordings = cp.random.standard_normal((COUNT, LENGTH), dtype=cp.float32)
window = cp.hanning(LENGTH).astype(cp.float32)
frequency = cp.fft.rfftfreq(LENGTH, 1 / RATE)
band = ((frequency > 60) & (frequency < 1500)).astype(cp.float32)
pitches = cp.empty(COUNT, cp.float32)
shortest, longest = RATE // 500, RATE // 60


def pitch(sound):
    spectrum = cp.fft.rfft(sound * window, axis=-1)
    power = cp.abs(spectrum * band) ** 2
    likeness = cp.fft.irfft(power, n=LENGTH, axis=-1)
    lag = likeness[:, shortest:longest].argmax(axis=-1) + shortest
    return RATE / lag


def analyse():
    for first in range(0, COUNT, BATCH):
        pitches[first : first + BATCH] = pitch(recordings[first : first + BATCH])


for _ in steps(cp.cuda.Device().synchronize, each=4):
    analyse()
