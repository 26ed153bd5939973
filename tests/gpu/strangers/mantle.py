"""Passes rows through a deep network, and compiles it where it is called."""
import jax
import jax.numpy as jnp

from gauge import steps

ROWS, WIDTH, DEPTH = 8192, 4096, 16
keys = jax.random.split(jax.random.key(0), DEPTH + 1)
weights = [jax.random.normal(key, (WIDTH, WIDTH), jnp.bfloat16) / WIDTH**0.5 for key in keys[1:]]
rows = jax.random.normal(keys[0], (ROWS, WIDTH), jnp.bfloat16)


def deep(weights, rows):
    for w in weights:
        rows = rows + jax.nn.gelu(rows @ w)
    return rows


last = None
for _ in steps(lambda: last.block_until_ready(), each=5):
    last = jax.jit(deep)(weights, rows)
