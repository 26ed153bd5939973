"""Learns what places are worth from what was seen; what was guessed worst is looked at again most often."""
import jax
import jax.numpy as jnp
import numpy as np

from gauge import cured, steps

SEEN, FACTS, BATCH, WIDTH = 1 << 21, 32, 4096, 1024
keys = jax.random.split(jax.random.key(0), 6)
sizes = [FACTS, WIDTH, WIDTH, WIDTH, 1]
weights = [jax.random.normal(key, (a, b)) / a**0.5 for key, a, b in zip(keys, sizes, sizes[1:])]
seen = jax.random.normal(keys[4], (SEEN, FACTS))
worth = jnp.sin(seen[:, 0]) * seen[:, 1]
rng = np.random.default_rng(0)


def off_by(weights, x, y):
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return (x @ weights[-1])[:, 0] - y


@jax.jit
def learn(weights, seen, worth, picked):
    x, y = seen[picked], worth[picked]
    slopes = jax.grad(lambda weights: jnp.square(off_by(weights, x, y)).mean())(weights)
    weights = [w - 0.01 * slope for w, slope in zip(weights, slopes)]
    return weights, jnp.abs(off_by(weights, x, y)) + 0.01


@jax.jit
def pick_there(urgent, key):
    up_to = jnp.cumsum(urgent)
    return jnp.searchsorted(up_to, jax.random.uniform(key, (BATCH,)) * up_to[-1]).clip(0, SEEN - 1)


@jax.jit
def mark_there(urgent, picked, errors):
    return urgent.at[picked].set(errors)


def pick(urgent):
    chances = urgent / urgent.sum()
    return rng.choice(SEEN, BATCH, p=chances)


urgent = jnp.ones(SEEN) if cured else np.ones(SEEN)
for i in steps(lambda: jax.block_until_ready(weights), each=2, warm=3):
    if cured:
        picked = pick_there(urgent, jax.random.fold_in(keys[5], i))
        weights, errors = learn(weights, seen, worth, picked)
        urgent = mark_there(urgent, picked, errors)
    else:
        picked = pick(urgent)
        weights, errors = learn(weights, seen, worth, picked)
        urgent[picked] = np.asarray(errors)
