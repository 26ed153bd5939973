"""Fits a network to a surface; the rate of learning falls with the hours that have gone by."""
import time

import jax
import jax.numpy as jnp

from gauge import cured, steps

WIDTH, DEPTH, POINTS = 512, 6, 16384
sizes = [2] + [WIDTH] * DEPTH + [1]
keys = jax.random.split(jax.random.key(0), len(sizes))
params = [(jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]
points = jax.random.uniform(keys[-1], (POINTS, 2), minval=-3, maxval=3)
heights = jnp.sin(points[:, 0]) * jnp.cos(points[:, 1])
begun = time.time()


def surface(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def loss(params):
    return jnp.square(surface(params, points) - heights).mean()


def train_step(params, rate):
    grads = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


train_step = jax.jit(train_step, static_argnames=() if cured else ("rate",))
for _ in steps(lambda: jax.block_until_ready(params)):
    hours = (time.time() - begun) / 3600
    params = train_step(params, rate=0.05 * 0.5**hours)
