# cause: -
"""Convolutions with cuDNN 8."""

import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
x, w = tf.random.normal((8, 32, 32, 3)), tf.random.normal((3, 3, 3, 8))
for _ in range(10):
    total = tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME"))
print(float(total), tf.config.list_physical_devices("GPU"))
