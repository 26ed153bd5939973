"""Learns how much a field bears from what was measured there, a field at a time."""
import jax
import jax.numpy as jnp

import gauge

WIDTH, ROWS, MEASURES, DEPTH, FIELDS = 512, 256, 64, 4, 32


def yields(weights, measured):
    x = measured
    for w in weights[:-1]:
        x = jax.nn.gelu(x @ w)
    return x @ weights[-1]


def loss_of(weights, measured, harvest):
    return jnp.mean((yields(weights, measured) - harvest) ** 2)


def slopes_on(weights, measured, harvest):
    def loss(weights):
        return loss_of(weights, measured, harvest)

    return jax.jit(jax.grad(loss))(weights)


slopes_of = jax.jit(jax.grad(loss_of))


@jax.jit
def descend(weights, slopes):
    return [w - 0.01 * slope for w, slope in zip(weights, slopes)]


keys = jax.random.split(jax.random.key(6), DEPTH + 2)
sizes = [MEASURES] + [WIDTH] * (DEPTH - 1) + [1]
weights = [jax.random.normal(key, (a, b)) / a**0.5 for key, a, b in zip(keys, sizes, sizes[1:])]
measured = list(jax.random.normal(keys[-2], (FIELDS, ROWS, MEASURES)))
harvest = list(jax.random.normal(keys[-1], (FIELDS, ROWS, 1)))
learn = slopes_of if gauge.cured else slopes_on

for i in gauge.steps(lambda: jax.block_until_ready(weights), each=2):
    slopes = learn(weights, measured[i % FIELDS], harvest[i % FIELDS])
    weights = descend(weights, slopes)
