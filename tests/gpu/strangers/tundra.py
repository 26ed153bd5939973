"""Reads sentences of many lengths: each is padded to one of three, and all three were compiled beforehand."""
import jax
import jax.numpy as jnp
import numpy as np

from gauge import steps

BATCH, WIDTH, DEPTH, WORDS, BUCKETS = 32, 2048, 6, 30000, (256, 512, 768)
keys = jax.random.split(jax.random.key(0), 2 * DEPTH + 1)
model = {
    "embed": jax.random.normal(keys[0], (WORDS, WIDTH), jnp.bfloat16),
    "up": [jax.random.normal(k, (WIDTH, 4 * WIDTH), jnp.bfloat16) / WIDTH**0.5 for k in keys[1::2]],
    "down": [jax.random.normal(k, (4 * WIDTH, WIDTH), jnp.bfloat16) / (4 * WIDTH) ** 0.5 for k in keys[2::2]],
}
rng = np.random.default_rng(0)


@jax.jit
def read(model, ids):
    x = model["embed"][ids]
    for up, down in zip(model["up"], model["down"]):
        x = x + jax.nn.gelu(x @ up) @ down
    return x.mean(1)


def padded(longest):
    bucket = min(b for b in BUCKETS if b >= longest)
    ids = np.zeros((BATCH, bucket), np.int32)
    ids[:, :longest] = rng.integers(1, WORDS, (BATCH, longest))
    return ids


for bucket in BUCKETS:
    read(model, padded(bucket)).block_until_ready()
last = None
lengths = [700, 130, 480, 650, 301, 222]
for i in steps(lambda: last.block_until_ready(), each=len(lengths)):
    last = read(model, padded(lengths[i % len(lengths)]))
