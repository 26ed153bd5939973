"""Waits for every small jitted step of JAX, or (cured) for the last one only.

truth
needs: jax
bound_by: launch sync
steps: 1
must: launch-bound sync-in-loop
may: under-filled-gpu latency-bound
never: pageable-copy host-bound no-overlap alloc-in-loop tiny-copies failed-calls no-cure
cured: sync-in-loop
cured_bound_by: launch compute
cured_never: sync-in-loop pageable-copy host-bound no-overlap
why: Two short kernels a step; dispatching them and waiting takes most of the time. The cure does not wait.
"""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

from stamp import loop, modes

w = jax.random.normal(jax.random.key(0), (512, 512)) * 0.04


@jax.jit
def step(x):
    return jnp.tanh(x @ w) * 0.5 + jnp.sin(x)


for cured in modes():
    x = jax.random.normal(jax.random.key(1), (512, 512))
    for _ in range(20):
        x = step(x)
    jax.block_until_ready(x)
    for _ in loop(12000, lambda: jax.block_until_ready(x), by="mean" if cured else "median", warm=20):
        x = step(x)
        if not cured:
            x.block_until_ready()
