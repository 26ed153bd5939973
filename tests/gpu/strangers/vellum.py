"""Learns to fill in the lines that are missing in old books: four blocks of attention, in JAX."""
import jax
import jax.numpy as jnp

from gauge import cured, steps

PAGES, LINES, WIDTH, HEADS, DEPTH = 16, 512, 1024, 16, 4
jax.config.update("jax_default_matmul_precision", "default" if cured else "highest")


def begin(key):
    def matrix(key, a, b):
        return jax.random.normal(key, (a, b)) / a**0.5

    mix, out, up, down = jax.random.split(key, 4)
    return {"mix": matrix(mix, WIDTH, 3 * WIDTH), "out": matrix(out, WIDTH, WIDTH), "up": matrix(up, WIDTH, 4 * WIDTH), "down": matrix(down, 4 * WIDTH, WIDTH)}


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def block(p, x):
    q, k, v = jnp.split((norm(x) @ p["mix"]).reshape(PAGES, LINES, HEADS, 3 * WIDTH // HEADS), 3, -1)
    scores = jnp.einsum("blhd,bmhd->bhlm", q, k) / (WIDTH / HEADS) ** 0.5
    x = x + jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(scores), v).reshape(PAGES, LINES, WIDTH) @ p["out"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def error(params, pages, gaps):
    x = pages * (1 - gaps)
    x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, params)
    return (jnp.square(x - pages) * gaps).mean()


@jax.jit
def learn(params, pages, gaps):
    slopes = jax.grad(error)(params, pages, gaps)
    return jax.tree.map(lambda p, slope: p - 0.01 * slope, params, slopes)


keys = jax.random.split(jax.random.key(0), DEPTH + 2)
params = jax.vmap(begin)(keys[:DEPTH])
pages = jax.random.normal(keys[-2], (PAGES, LINES, WIDTH))
gaps = (jax.random.uniform(keys[-1], (PAGES, LINES, 1)) < 0.15).astype(jnp.float32)
for _ in steps(lambda: jax.block_until_ready(params), each=4, warm=3):
    params = learn(params, pages, gaps)
