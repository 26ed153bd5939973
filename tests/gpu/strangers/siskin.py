"""Trains sixty small layers in JAX, with slopes that are kept from growing too long."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

leaves = {f"leaf{n}": jax.random.normal(key, (256, 256)) * 0.06 for n, key in enumerate(jax.random.split(jax.random.key(0), 60))}
x = jax.random.normal(jax.random.key(1), (128, 256))


@jax.jit
def slopes_of(leaves):
    def lost(leaves):
        y = x
        for leaf in leaves.values():
            y = jnp.tanh(y @ leaf)
        return jnp.square(y - x).mean()

    return jax.grad(lost)(leaves)


@jax.jit
def moved(leaves, slopes, size):
    by = 0.1 * jnp.minimum(1.0, 1.0 / jnp.sqrt(size + 1e-12))
    return jax.tree.map(lambda leaf, slope: leaf - by * slope, leaves, slopes)


def size_of(slopes):
    return sum(jnp.vdot(slope, slope) for slope in slopes.values())


def size_read(slopes):
    return sum(float(jnp.vdot(slope, slope)) for slope in slopes.values())


size = jax.jit(size_of) if cured else size_read


def hop(leaves):
    slopes = slopes_of(leaves)
    return moved(leaves, slopes, size(slopes))


for _ in steps(lambda: jax.block_until_ready(leaves), each=20):
    leaves = hop(leaves)
