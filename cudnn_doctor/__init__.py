"""cudnn-doctor: find out why TensorFlow, PyTorch or JAX stops in cuDNN."""

__version__ = "0.1.0"
