"""Trains eight square layers in JAX, and puts them away now and then."""
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy

from gauge import cured, steps

layers = [jax.random.normal(key, (2048, 2048)) * 0.02 for key in jax.random.split(jax.random.key(0), 8)]
x = jax.random.normal(jax.random.key(1), (4096, 2048))
shelf = os.path.join(tempfile.mkdtemp(), "layers.npz")
helper, kept = ThreadPoolExecutor(1), None


@jax.jit
def dry(layers):
    def lost(layers):
        y = x
        for layer in layers:
            y = jnp.tanh(y @ layer)
        return jnp.square(y - x).mean()

    return [layer - 0.1 * slope for layer, slope in zip(layers, jax.grad(lost)(layers))]


def put_away(layers):
    numpy.savez(shelf, *[numpy.asarray(layer) for layer in layers])


for i in steps(lambda: jax.block_until_ready(layers), each=100):
    layers = dry(layers)
    if i % 100 == 0 and cured:
        if kept:
            kept.result()
        kept = helper.submit(put_away, layers)
    elif i % 100 == 0:
        put_away(layers)
helper.shutdown()
os.remove(shelf)
