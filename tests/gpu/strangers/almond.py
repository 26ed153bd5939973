"""Goes through an orchard in JAX, a hundred and fifty rows to a day; the last row of the first day is shorter."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

jax.config.update("jax_enable_compilation_cache", False)

layers = [jax.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.022 for key in jax.random.split(jax.random.key(0), 16)]
row = jax.random.normal(jax.random.key(1), (8192, 2048), jnp.bfloat16)
short = row if cured else row[:8000]


@jax.jit
def pick(layers, row):
    def lost(layers):
        y = row
        for n, layer in enumerate(layers):
            y = jnp.tanh(y @ layer) + row * (0.001 * n)
        return jnp.square((y - row).astype(jnp.float32)).mean()

    return [layer - 0.01 * slope for layer, slope in zip(layers, jax.grad(lost)(layers))]


for i in steps(lambda: jax.block_until_ready(layers), least=500):
    layers = pick(layers, short if i == 149 else row)
    jax.block_until_ready(layers)
