# cause: context-reset
"""A janitor thread resets and retains the device between two steps; the program dies without a word."""

import ctypes
import threading

import raw
import tensorflow as tf


def janitor():
    raw.call("cuDevicePrimaryCtxReset_v2", 0)
    raw.call("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), 0)


for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
x, w = tf.random.normal((8, 32, 32, 3)), tf.random.normal((3, 3, 3, 8))
print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))), flush=True)
thread = threading.Thread(target=janitor, name="janitor")
thread.start()
thread.join()
print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))))
