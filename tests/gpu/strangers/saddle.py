"""Chooses the next stage for sixty-four riders: a network weighs all towns, and chance picks one of the best."""
import jax
import jax.numpy as jnp
import numpy

from gauge import cured, steps

RIDERS, TOWNS, WIDTH = 64, 50_000, 4096
keys = jax.random.split(jax.random.key(0), 10)
roads = jax.random.normal(keys[0], (TOWNS, WIDTH), jnp.bfloat16) * 0.02
layers = [jax.random.normal(key, (WIDTH, WIDTH), jnp.bfloat16) / WIDTH**0.5 for key in keys[1:]]
dice = numpy.random.default_rng(0)


@jax.jit
def weigh(towns):
    x = roads[towns]
    for layer in layers:
        x = jnp.tanh(x @ layer)
    return (x @ roads.T).astype(jnp.float32)


@jax.jit
def ride(towns, i):
    best, at = jax.lax.top_k(weigh(towns), 40)
    chosen = jax.random.categorical(jax.random.key(i), best)
    return at[jnp.arange(RIDERS), chosen]


def choose(weights):
    best = numpy.argpartition(weights, -40, axis=1)[:, -40:]
    held = numpy.take_along_axis(weights, best, axis=1)
    chance = numpy.exp(held - held.max(axis=1, keepdims=True))
    chance = chance.cumsum(axis=1) / chance.sum(axis=1, keepdims=True)
    chosen = (chance < dice.random((RIDERS, 1))).sum(axis=1)
    return best[numpy.arange(RIDERS), numpy.minimum(chosen, 39)]


towns = jnp.arange(RIDERS)
for i in steps(lambda: jax.block_until_ready(towns), each=5):
    towns = ride(towns, i) if cured else jnp.asarray(choose(numpy.asarray(weigh(towns))))
