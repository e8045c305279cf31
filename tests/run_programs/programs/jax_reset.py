# cause: context-reset
"""A reset of the device under JAX."""

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
import jax.numpy as jnp
import raw


def clean_up():
    raw.call("cuDevicePrimaryCtxReset_v2", 0)


x, w = jnp.ones((8, 3, 32, 32)), jnp.ones((8, 3, 3, 3))
convolve = jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME").sum())
print(convolve(x, w))
clean_up()
print(convolve(x, w))
