"""Lays a picture by gradients in JAX: many small stones, each with a momentum."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

keys = jax.random.split(jax.random.key(0), 40)
stones = {f"stone{n}": {"w": jax.random.normal(key, (128, 128)) * 0.08, "b": jnp.zeros(128)} for n, key in enumerate(keys)}
pace = jax.tree.map(jnp.zeros_like, stones)
x = jax.random.normal(jax.random.key(1), (256, 128))


@jax.jit
def slopes(stones):
    def lost(stones):
        y = x
        for stone in stones.values():
            y = jnp.tanh(y @ stone["w"] + stone["b"])
        return jnp.square(y - x).mean()

    return jax.grad(lost)(stones)


def lay(stones, pace, slope):
    pace = jax.tree.map(lambda v, g: 0.9 * v + g, pace, slope)
    stones = jax.tree.map(lambda p, v: p - 0.01 * v, stones, pace)
    return stones, pace


if cured:
    lay = jax.jit(lay)
for _ in steps(lambda: jax.block_until_ready(stones), each=20):
    stones, pace = lay(stones, pace, slopes(stones))
