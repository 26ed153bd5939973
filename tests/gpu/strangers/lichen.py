"""Tests a classifier on features that lie on the GPU; the labels of a batch come from numpy."""
import cupy as cp
import numpy as np

from gauge import steps

BATCH, WIDTH, CLASSES, DEPTH = 8192, 4096, 1000, 10
cp.random.seed(0)
rng = np.random.default_rng(0)
weights = [(cp.random.standard_normal((WIDTH, WIDTH), dtype=cp.float32) / WIDTH**0.5).astype(cp.float16) for _ in range(DEPTH)]
head = (cp.random.standard_normal((WIDTH, CLASSES), dtype=cp.float32) / WIDTH**0.5).astype(cp.float16)
features = cp.random.standard_normal((BATCH, WIDTH), dtype=cp.float32).astype(cp.float16)
labels = rng.integers(0, CLASSES, (16, BATCH)).astype(np.int16)
right = cp.zeros((), cp.int64)


def test(i):
    x = features
    for w in weights:
        x = cp.maximum(x @ w, 0)
    truth = cp.asarray(labels[i % 16])
    right[...] += ((x @ head).argmax(axis=1) == truth).sum()


for i in steps(cp.cuda.Device().synchronize, each=10):
    test(i)
