"""Calls a jitted function with an input of another length each time, so that JAX compiles it each time.

truth
needs: jax numpy
bound_by: host cold-start
steps: none
must: cold-start host-bound no-cure next-batch
may: pageable-copy
never: launch-bound sync-in-loop alloc-in-loop tiny-copies no-overlap under-filled-gpu copy-bound
why: Each new shape is compiled for some 100 ms and runs for less than one. Padding to a few lengths would cure it.
"""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy

from stamp import loop

layers = [jax.random.normal(jax.random.key(k), (256, 256)) * 0.06 for k in range(3)]


@jax.jit
def score(x):
    for layer in layers:
        x = jax.nn.softmax(jnp.tanh(x @ layer), axis=-1)
    return x.mean()


seen = 0.0
for i in loop(25, lambda: None):
    seen += float(score(numpy.ones((100 + 7 * i, 256), numpy.float32)))
