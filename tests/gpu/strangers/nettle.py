"""Trains a value network on replayed steps of a game; what each episode was like is kept for the plots."""
import gc
import random

import jax
import jax.numpy as jnp
import numpy as np

from gauge import cured, steps

STATE, ACTIONS, WIDTH, BATCH, KEPT = 256, 18, 4096, 4096, 65536
rng = np.random.default_rng(0)
states = jnp.asarray(rng.standard_normal((KEPT, STATE), dtype=np.float32))
rewards = jnp.asarray(rng.standard_normal(KEPT, dtype=np.float32))
priority = np.ones(KEPT)
episodes = [{"number": n, "length": n % 900, "actions": [n % ACTIONS, (n * 7) % ACTIONS]} for n in range(900_000)]
sizes = [STATE, WIDTH, WIDTH, WIDTH, ACTIONS]
keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
params = [jax.random.normal(k, (a, b), jnp.bfloat16) / a**0.5 for k, a, b in zip(keys, sizes, sizes[1:])]


def values(params, x):
    for w in params[:-1]:
        x = jax.nn.relu(x @ w)
    return (x @ params[-1]).astype(jnp.float32)


@jax.jit
def update(params, states, rewards, rows):
    seen, reward = states[rows].astype(jnp.bfloat16), rewards[rows]

    def loss(params):
        error = reward + 0.99 * jax.lax.stop_gradient(values(params, seen[::-1]).max(1)) - values(params, seen)[:, 0]
        return jnp.square(error).mean(), jnp.abs(error)

    grads, error = jax.grad(loss, has_aux=True)(params)
    return [w - (1e-4 * g).astype(w.dtype) for w, g in zip(params, grads)], error


def train(i):
    global params
    rows = rng.integers(0, KEPT, BATCH)
    params, error = update(params, states, rewards, rows)
    priority[rows] = np.asarray(error)
    episodes[random.randrange(len(episodes))] = {"number": i, "length": 1, "actions": [i % ACTIONS, 0]}
    if i % 20 == 0 and not cured:
        gc.collect()


if cured:
    gc.freeze()
for i in steps(lambda: jax.block_until_ready(params), each=20):
    train(i)
