# cause: -
"""A convolution and its gradient."""

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
import jax.numpy as jnp

x, w = jnp.ones((8, 3, 32, 32)), jnp.ones((8, 3, 3, 3))
loss = jax.jit(jax.grad(lambda b: jax.lax.conv(x, b, (1, 1), "SAME").sum()))
for _ in range(10):
    w = w - 0.001 * loss(w)
print(w.sum())
