"""Follows the fireflies of one night after another over a meadow; each night there are as many as there are."""
import jax
import jax.numpy as jnp
import numpy as np

from gauge import cured, steps

FEWEST, MOST, MOMENTS = 12000, 24000, 60
jax.config.update("jax_enable_compilation_cache", False)
rng = np.random.default_rng(0)


def moment(k, state):
    where, way = state
    pull = -0.2 * where + 0.3 * jnp.sin(3.0 * where[:, ::-1] + 0.1 * k)
    way = 0.98 * way + 0.05 * pull
    return where + 0.05 * way, way


@jax.jit
def night(where, way, there):
    where, way = jax.lax.fori_loop(0, MOMENTS, moment, (where, way))
    bright = jnp.exp(-jnp.square(where).sum(1)) * there
    return bright.sum() / there.sum()


def hatch():
    """Where tonight's fireflies are, how they fly, and which of the rows are fireflies."""
    count = int(rng.integers(FEWEST, MOST))
    rows = MOST if cured else count
    where, way, there = np.zeros((rows, 2), np.float32), np.zeros((rows, 2), np.float32), np.zeros(rows, np.float32)
    where[:count] = rng.standard_normal((count, 2))
    way[:count] = rng.standard_normal((count, 2)) * 0.1
    there[:count] = 1
    return where, way, there


light = []
for _ in steps(lambda: None, warm=2):
    light.append(float(night(*hatch())))
