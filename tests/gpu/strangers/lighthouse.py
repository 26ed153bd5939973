"""Trains wide layers in bfloat16 and notes down what each step says of itself."""
import jax
import jax.numpy as jnp

import gauge

WIDTH, LAYERS, ROWS = 8192, 4, 4096


def loss_of(weights, x):
    y = x
    for w in weights:
        y = y + jnp.tanh(y @ w)
    return jnp.mean(jnp.square((y - x).astype(jnp.float32)))


@jax.jit
def step(weights, x):
    loss, slopes = jax.value_and_grad(loss_of)(weights, x)
    size = sum(jnp.sum(jnp.square(s.astype(jnp.float32))) for s in slopes)
    new = [w - jnp.bfloat16(1e-3) * s for w, s in zip(weights, slopes)]
    return new, {"loss": loss, "slope": jnp.sqrt(size)}


keys = jax.random.split(jax.random.key(2), LAYERS + 1)
weights = [jax.random.normal(k, (WIDTH, WIDTH), jnp.bfloat16) * jnp.bfloat16(0.01) for k in keys[:LAYERS]]
x = jax.random.normal(keys[-1], (ROWS, WIDTH), jnp.bfloat16)
book, before = [], None

for i in gauge.steps(lambda: jax.block_until_ready(weights)):
    weights, told = step(weights, x)
    if before is not None:
        book.append(jax.device_get(before))
    before = told
