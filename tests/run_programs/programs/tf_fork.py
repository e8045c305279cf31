# cause: fork-after-init
"""A worker is forked after the first convolution."""

import os

import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
x, w = tf.random.normal((8, 32, 32, 3)), tf.random.normal((3, 3, 3, 8))
print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))), flush=True)
child = os.fork()
if not child:
    print(float(tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))))
    os._exit(0)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status) % 256)
