"""Lets the salt of a bay spread, and what is heavy sink."""
import jax
import jax.numpy as jnp
import numpy as np

from gauge import cured, steps

SIDE, ROUNDS = 1024, 32
SALT = np.linspace(0.0, 1.0, 129).astype(np.float32)
WEIGHT = (1.0 + 0.3 * SALT + 0.05 * np.sin(9 * SALT)).astype(np.float32)


def table(salt):
    return np.interp(np.asarray(salt), SALT, WEIGHT).astype(np.float32)


def weight_of(salt):
    if cured:
        return jnp.interp(salt, SALT, WEIGHT)
    return jax.pure_callback(table, jax.ShapeDtypeStruct(salt.shape, salt.dtype), salt)


def spread(_, salt):
    around = sum(jnp.roll(salt, by, axis) for by in (-1, 1) for axis in (0, 1))
    return salt + 0.2 * (around / 4 - salt)


@jax.jit
def advance(salt):
    salt = jax.lax.fori_loop(0, ROUNDS, spread, salt)
    heavy = weight_of(salt)
    sunk = jnp.roll(salt, 1, 0) * 0.1 * (heavy - 1.0)
    return jnp.clip(salt + sunk - jnp.roll(sunk, -1, 0), 0.0, 1.0)


salt = jax.random.uniform(jax.random.key(0), (SIDE, SIDE), jnp.float32)
for i in steps(lambda: salt.block_until_ready(), each=4):
    salt = advance(salt)
