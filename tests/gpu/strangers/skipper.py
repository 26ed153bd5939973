"""Steers five hundred boats by a policy in JAX; wind and water are the world's own arithmetic."""
import math

import jax
import jax.numpy as jnp
import numpy

from gauge import cured, steps

first = jax.random.normal(jax.random.key(0), (4, 512)) * 0.3
second = jax.random.normal(jax.random.key(1), (512, 2)) * 0.1
boats = numpy.random.default_rng(0).standard_normal((512, 4)).astype(numpy.float32)


@jax.jit
def policy(boats):
    return jnp.tanh(jnp.tanh(boats @ first) @ second)


def sail(boat, rudder, wind):
    x, y, vx, vy = boat
    for _ in range(20):
        drag = 0.1 * math.sqrt(vx * vx + vy * vy)
        vx += 0.01 * (rudder - drag * vx + math.sin(y))
        vy += 0.01 * (wind - drag * vy + math.cos(x))
        x, y = x + 0.01 * vx, y + 0.01 * vy
    return x, y, vx, vy


def sail_all(boats, rudders):
    x, y, vx, vy = boats.T.copy()
    for _ in range(20):
        drag = 0.1 * numpy.sqrt(vx * vx + vy * vy)
        vx += 0.01 * (rudders[:, 0] - drag * vx + numpy.sin(y))
        vy += 0.01 * (rudders[:, 1] - drag * vy + numpy.cos(x))
        x, y = x + 0.01 * vx, y + 0.01 * vy
    return numpy.stack([x, y, vx, vy], axis=1)


def tack(boats):
    rudders = numpy.asarray(policy(boats))
    if cured:
        return sail_all(boats, rudders)
    return numpy.array([sail(boat, *rudder) for boat, rudder in zip(boats.tolist(), rudders.tolist())], numpy.float32)


for _ in steps(lambda: None):
    boats = tack(boats)
