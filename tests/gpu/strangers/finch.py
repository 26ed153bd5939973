"""Teaches a deep, narrow net a song in CuPy, with the slopes by hand and Adam as in the paper."""
import cupy as cp

from gauge import cured, steps

DEPTH, WIDTH, ROWS = 40, 256, 256
cp.random.seed(0)


def layers(flat):
    return [flat[k * WIDTH * WIDTH : (k + 1) * WIDTH * WIDTH].reshape(WIDTH, WIDTH) for k in range(DEPTH)]


everything = [cp.zeros(DEPTH * WIDTH * WIDTH, cp.float32) for _ in range(4)]
everything[0][:] = cp.random.standard_normal(DEPTH * WIDTH * WIDTH, dtype=cp.float32) / WIDTH**0.5
weights, slopes, means, squares = (layers(flat) for flat in everything)
song = cp.random.standard_normal((ROWS, WIDTH), dtype=cp.float32)
groups = [everything] if cured else list(zip(weights, slopes, means, squares))


def find_slopes():
    notes = [song]
    for weight in weights:
        notes.append(cp.tanh(notes[-1] @ weight))
    back = (notes[-1] - song) * (2 / song.size)
    for k in reversed(range(DEPTH)):
        back = back * (1 - notes[k + 1] * notes[k + 1])
        slopes[k][...] = notes[k].T @ back
        back = back @ weights[k].T


def adam(weight, slope, mean, square, rate=1e-4):
    mean *= 0.9
    mean += 0.1 * slope
    square *= 0.999
    square += 0.001 * slope * slope
    weight -= rate * mean / (cp.sqrt(square) + 1e-8)


def practise():
    find_slopes()
    for weight, slope, mean, square in groups:
        adam(weight, slope, mean, square)


for _ in steps(cp.cuda.Device().synchronize, each=10):
    practise()
