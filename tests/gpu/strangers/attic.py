"""Learns to foretell what a machine does next. All that was seen is kept, the newest over the oldest, and some of it is drawn at each step."""
import functools

import jax
import jax.numpy as jnp

from gauge import cured, steps

ROOM, SIZE, NEW, DRAWN, WIDTH = 1 << 22, 256, 4096, 8192, 512


@functools.partial(jax.jit, donate_argnums=(0,) if cured else ())
def keep(kept, rows, at):
    return jax.lax.dynamic_update_slice(kept, rows, (at, 0))


def lost(weights, some):
    x, after = jnp.split(some, 2, -1)
    for weight in weights[:-1]:
        x = jax.nn.relu(x @ weight)
    return jnp.mean((x @ weights[-1] - after) ** 2)


@jax.jit
def learn(weights, kept, number):
    drawn = jax.random.randint(jax.random.fold_in(jax.random.key(2), number), (DRAWN,), 0, ROOM)
    loss, slopes = jax.value_and_grad(lost)(weights, kept[drawn])
    return jax.tree.map(lambda weight, slope: weight - 0.01 * slope, weights, slopes), loss


sizes = (SIZE // 2, WIDTH, WIDTH, SIZE // 2)
keys = jax.random.split(jax.random.key(0), len(sizes))
weights = [jax.random.normal(key, (a, b)) / a**0.5 for key, a, b in zip(keys, sizes, sizes[1:])]
seen = [jax.random.normal(key, (NEW, SIZE)) for key in jax.random.split(jax.random.key(1), 4)]
kept = jnp.zeros((ROOM, SIZE))
for i in steps(lambda: loss.block_until_ready(), each=10):
    kept = keep(kept, seen[i % 4], i * NEW % ROOM)
    weights, loss = learn(weights, kept, i)
