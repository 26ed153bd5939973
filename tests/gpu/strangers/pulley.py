"""Trains a network in bfloat16; its weights in single precision are kept apart, with the averages of Adam."""
import jax
import jax.numpy as jnp
import numpy

import gauge

WIDTH, LAYERS, ROWS = 4096, 3, 4096
gpu = jax.devices()[0]
shed = gpu if gauge.cured else jax.devices("cpu")[0]


@jax.jit
def slopes_of(weights, x, y):
    def loss(weights):
        z = x
        for w in weights:
            z = z + jnp.tanh(z @ w)
        return jnp.mean(jnp.square((z - y).astype(jnp.float32)))

    return jax.grad(loss)(weights)


@jax.jit
def lift(kept, slopes, count):
    """Adam: what is kept of each weight is itself, its mean slope and its mean square."""
    new = []
    for (w, mean, square), slope in zip(kept, slopes):
        slope = slope.astype(jnp.float32)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        step = mean / (1 - 0.9**count) / (jnp.sqrt(square / (1 - 0.99**count)) + 1e-8)
        new.append((w - 1e-4 * step, mean, square))
    return new, [w.astype(jnp.bfloat16) for w, _, _ in new]


def train(weights, kept, count):
    slopes = slopes_of(weights, x, y)
    slopes = jax.device_put(slopes, shed)
    kept, weights = lift(kept, slopes, count)
    return jax.device_put(weights, gpu), kept


keys = jax.random.split(jax.random.key(8), LAYERS + 2)
x, y = (jax.random.normal(key, (ROWS, WIDTH), jnp.bfloat16) for key in keys[LAYERS:])
kept = [(jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5, jnp.zeros((WIDTH, WIDTH)), jnp.zeros((WIDTH, WIDTH))) for key in keys[:LAYERS]]
weights = jax.device_put([w.astype(jnp.bfloat16) for w, _, _ in kept], gpu)
kept = jax.device_put(kept, shed)

for i in gauge.steps(lambda: jax.block_until_ready((weights, kept)), each=2):
    weights, kept = train(weights, kept, numpy.float32(i + 1))
