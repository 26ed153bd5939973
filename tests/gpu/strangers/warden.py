"""Keeps watch over a net as it computes: each of three wardens waits for a number of its own and writes it down."""
import queue
import threading

import jax
import jax.numpy as jnp

from gauge import steps

ROWS, WIDTH, DEPTH, WARDENS = 16384, 4096, 12, 3
keys = jax.random.split(jax.random.key(0), DEPTH + 1)
weights = [(jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5).astype(jnp.bfloat16) for key in keys[:DEPTH]]
x = jax.random.normal(keys[-1], (ROWS, WIDTH)).astype(jnp.bfloat16)
posts, written = queue.Queue(), []


@jax.jit
def watch(x, weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x, jnp.square(x.astype(jnp.float32)).mean()


def warden():
    while (number := posts.get()) is not None:
        written.append(float(number))


threads = [threading.Thread(target=warden, name=f"warden-{n}", daemon=True) for n in range(WARDENS)]
for thread in threads:
    thread.start()
for _ in steps(lambda: jax.block_until_ready(x), each=10):
    x, number = watch(x, weights)
    posts.put(number)
for _ in threads:
    posts.put(None)
for thread in threads:
    thread.join()
