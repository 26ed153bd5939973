"""Trains a large network with JAX: one jitted call a step, and nothing waits.

truth
needs: jax
bound_by: compute
steps: 1
must:
may: memory-chain latency-bound tail-wave idle-tensor-cores
never: sync-in-loop pageable-copy host-bound launch-bound no-overlap alloc-in-loop tiny-copies no-cure
why: A step computes for several ms and its dispatch takes a fraction of that; steps are queued ahead.
"""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
from functools import partial

import jax
import jax.numpy as jnp

from stamp import loop

x = jax.random.normal(jax.random.key(0), (8192, 4096), jnp.bfloat16)
net = [jax.random.normal(jax.random.key(k), (4096, 4096), jnp.bfloat16) * 0.02 for k in range(3)]


def lost(net, x):
    y = x
    for layer in net:
        y = jax.nn.gelu(y @ layer)
    return jnp.square((y - x).astype(jnp.float32)).mean()


@partial(jax.jit, donate_argnums=0)
def step(net, x):
    slopes = jax.grad(lost)(net, x)
    return [layer - 0.01 * slope for layer, slope in zip(net, slopes)]


for _ in range(3):
    net = step(net, x)
jax.block_until_ready(net)
for _ in loop(300, lambda: jax.block_until_ready(net), by="mean", warm=3):
    net = step(net, x)
