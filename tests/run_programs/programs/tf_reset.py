# cause: context-reset
"""A library frees memory by a reset and retains the device again."""

import ctypes

import raw
import tensorflow as tf


def free_memory():
    raw.call("cuDevicePrimaryCtxReset_v2", 0)
    raw.call("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), 0)


for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
x, w = tf.random.normal((8, 32, 32, 3)), tf.random.normal((3, 3, 3, 8))
print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))), flush=True)
free_memory()
print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))))
