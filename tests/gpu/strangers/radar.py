"""Looks at what a radar sees a hundred times a second, or as often as it can."""
import time

import jax
import jax.numpy as jnp

import gauge

SIZE, ROWS, LAYERS, RATE = 8192, 4096, 32, 100.0


@jax.jit
def look(weights, echo):
    x = echo
    for _ in range(LAYERS):
        x = jnp.tanh(x @ weights)
    return jnp.max(x.astype(jnp.float32))


class Beat:
    def __init__(self, rate):
        self.period, self.due = 1.0 / rate, time.monotonic()

    def wait(self):
        self.due += self.period
        left = self.due - time.monotonic()
        if left > 0:
            time.sleep(left)


keys = jax.random.split(jax.random.key(4), 2)
weights = jax.random.normal(keys[0], (SIZE, SIZE), jnp.bfloat16) * jnp.bfloat16(0.02)
echo = jax.random.normal(keys[1], (ROWS, SIZE), jnp.bfloat16)
beat, seen = Beat(RATE), []

for _ in gauge.steps(lambda: None):
    beat.wait()
    seen.append(float(look(weights, echo)))
