# cause: python-error
"""Shapes that do not fit, found before anything reaches the GPU."""

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax.numpy as jnp

x = jnp.ones((8, 3))
total = float(x.sum())
rows = [1, 2, 3]
print(total, rows[7])
