"""Serves a recommender: users ask, all items are weighed for them, and the best groups are sent back."""
import time

import jax
import jax.numpy as jnp
import numpy as np

from gauge import cured, steps

ASKING, USERS, ITEMS, WIDTH = 4096, 100_000, 200_000, 1024
keys = jax.random.split(jax.random.key(0), 3)
model = {
    "users": jax.random.normal(keys[0], (USERS, WIDTH), jnp.bfloat16),
    "items": jax.random.normal(keys[1], (ITEMS, WIDTH), jnp.bfloat16),
    "tower": jax.random.normal(keys[2], (WIDTH, WIDTH), jnp.bfloat16) / WIDTH**0.5,
}
requests = [np.random.default_rng(n).integers(0, USERS, ASKING, dtype=np.int32) for n in range(8)]


@jax.jit
def match(model, ids):
    users = jax.nn.relu(model["users"][ids] @ model["tower"])
    scores = users @ model["items"].T
    return jax.lax.top_k(scores.reshape(ASKING, 1000, ITEMS // 1000).max(2).astype(jnp.float32), 20)


def wait_for(result):
    if cured:
        jax.block_until_ready(result)
        return
    while not all(part.is_ready() for part in result):
        time.sleep(0.01)


def serve(ids):
    result = match(model, ids)
    wait_for(result)
    scores, groups = (np.asarray(part) for part in result)
    return groups[scores[:, 0] > 0]


for i in steps(lambda: None):
    serve(requests[i % len(requests)])
