"""Learns a curve; how far each step goes falls slowly with their number."""
import math

import jax
import jax.numpy as jnp

from gauge import cured, steps

ROWS, WIDTH, DEPTH = 4096, 1024, 3
jax.config.update("jax_enable_compilation_cache", False)
keys = jax.random.split(jax.random.key(0), DEPTH + 2)
weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys[:DEPTH]]
x, y = (jax.random.normal(key, (ROWS, WIDTH)) for key in keys[DEPTH:])


def error(weights, x, y):
    for w in weights[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ weights[-1] - y) ** 2)


def go(weights, x, y, rate):
    return [w - rate * slope for w, slope in zip(weights, jax.grad(error)(weights, x, y))]


learn = jax.jit(go, static_argnames=() if cured else ("rate",))
for i in steps(lambda: jax.block_until_ready(weights), each=2, warm=2):
    rate = 0.05 * (1 + math.cos(math.pi * min(1, i / 20000)))
    weights = learn(weights, x, y, rate=rate)
