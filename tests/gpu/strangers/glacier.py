"""Foretells how thick the ice is in eight places, from four thousand days of weather."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

PLACES, DAYS, WIDTH, DEPTH = 8, 4096, 512, 2


def recur(left, fresh):
    """Of each day: what is left of the ice of the day before, and what is fresh."""
    if cured:
        return jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (left, fresh))[1]

    def day(ice, weather):
        ice = weather[0] * ice + weather[1]
        return ice, ice

    return jax.lax.scan(day, jnp.zeros_like(fresh[0]), (left, fresh))[1]


@jax.jit
def foretell(layers, x):
    for into, out in layers:
        melt, fresh = jnp.split((x @ into).astype(jnp.float32), 2, -1)
        left = jax.nn.sigmoid(melt + 2)
        x = x + recur(left, (1 - left) * fresh).astype(jnp.bfloat16) @ out
    return x


keys = jax.random.split(jax.random.key(0), 2 * DEPTH + 4)
layers = [
    (jax.random.normal(a, (WIDTH, 2 * WIDTH), jnp.bfloat16) / WIDTH**0.5, jax.random.normal(b, (WIDTH, WIDTH), jnp.bfloat16) / WIDTH**0.5)
    for a, b in zip(keys[:DEPTH], keys[DEPTH : 2 * DEPTH])
]
weather = [jax.random.normal(key, (DAYS, PLACES, WIDTH), jnp.bfloat16) for key in keys[2 * DEPTH :]]
for i in steps(lambda: ice.block_until_ready(), each=4):
    ice = foretell(layers, weather[i % 4])
