"""Reckons how a bridge bends under eight loads, one load after another."""
import jax
import jax.numpy as jnp

import gauge

LOADS, POINTS, WIDTH = 8, 4096, 8192


@jax.jit
def bend_all(weights, loads):
    def bend(load):
        y = load
        for w in weights:
            y = y + jnp.tanh(y @ w)
        return jnp.sum(jnp.square(y.astype(jnp.float32)), 0)

    return jax.lax.map(bend, loads)


keys = jax.random.split(jax.random.key(9), 4)
weights = [jax.random.normal(key, (WIDTH, WIDTH), jnp.bfloat16) * jnp.bfloat16(0.01) for key in keys[:3]]
loads = jax.random.normal(keys[3], (LOADS, POINTS, WIDTH), jnp.bfloat16)

for _ in gauge.steps(lambda: bent.block_until_ready(), each=4):
    bent = bend_all(weights, loads)
