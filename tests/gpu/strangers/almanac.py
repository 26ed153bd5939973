"""Trains wide layers in bfloat16, at a rate that an almanac on the CPU tells for each step."""
import jax
import jax.numpy as jnp
import numpy

import gauge

WIDTH, LAYERS, ROWS = 8192, 4, 4096
gpu, desk = jax.devices()[0], jax.devices("cpu")[0]


@jax.jit
def rate_of(day):
    warm = jnp.minimum(day / 100, 1.0)
    return 1e-4 * warm * (1 + jnp.cos(day * 0.001)) / 2


@jax.jit
def step(weights, x, rate):
    def loss(weights):
        y = x
        for w in weights:
            y = y + jnp.tanh(y @ w)
        return jnp.mean(jnp.square((y - x).astype(jnp.float32)))

    return [w - rate.astype(jnp.bfloat16) * slope for w, slope in zip(weights, jax.grad(loss)(weights))]


keys = jax.random.split(jax.random.key(5), LAYERS + 1)
weights = [jax.random.normal(key, (WIDTH, WIDTH), jnp.bfloat16) * jnp.bfloat16(0.01) for key in keys[:LAYERS]]
x = jax.random.normal(keys[-1], (ROWS, WIDTH), jnp.bfloat16)

for day in gauge.steps(lambda: jax.block_until_ready(weights), each=4):
    rate = rate_of(jax.device_put(numpy.float32(day), desk))
    weights = step(weights, x, jax.device_put(rate, gpu))
