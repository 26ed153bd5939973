"""Lets spices draw in a small pot, in JAX."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

pot = jax.random.uniform(jax.random.key(0), (256, 256))
spoon = jax.random.normal(jax.random.key(1), (256, 256)) * 0.06


def draw(pot):
    for heat in range(8):
        warm = jnp.tanh(pot @ spoon)
        pot = 0.6 * pot + 0.3 * warm + 0.001 * jnp.sin(pot * heat)
        pot = pot - pot.mean(axis=1, keepdims=True)
        pot = jnp.where(pot > 1.0, 1.0, pot)
    return pot


if cured:
    draw = jax.jit(draw)
for _ in steps(lambda: pot.block_until_ready(), each=20):
    pot = draw(pot)
