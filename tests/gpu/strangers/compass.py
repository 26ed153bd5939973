"""Fits a small network while its rate of learning goes down along a cosine."""
import functools
import math
import random

import jax
import jax.numpy as jnp

import gauge

PEAK, LONG = random.uniform(1e-3, 2e-3), 4000


def rate_of(i):
    return PEAK * 0.5 * (1 + math.cos(math.pi * min(i, LONG) / LONG))


def loss_of(weights, x, y):
    for w, b in weights[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = weights[-1]
    return jnp.mean((x @ w + b - y) ** 2)


@functools.partial(jax.jit, static_argnames=() if gauge.cured else ("rate",))
def step(weights, x, y, rate):
    loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, s: w - rate * s, weights, slopes), loss


keys = jax.random.split(jax.random.key(5), 5)
sizes = [32, 256, 4]
weights = [(jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]
x, y = jax.random.normal(keys[3], (1024, 32)), jax.random.normal(keys[4], (1024, 4))

for i in gauge.steps(lambda: jax.block_until_ready(weights), warm=3, least=20):
    weights, loss = step(weights, x, y, rate=rate_of(i))
    if i % 10 == 0:
        print(f"{i}: {float(loss):.4f}")
