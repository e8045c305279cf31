"""Runs inside the examined Python, not the doctor's: one framework's own word on cuDNN, as JSON lines on a descriptor.

    python framework_task.py FD FRAMEWORK WORK,WORK...      FD 1: in words, for people

FRAMEWORK is torch, tensorflow, jax or cupy; WORK is convolution, rnn or attention, "-fp16" or "-bf16" behind it. Each
result is compared with the same on the CPU in fp32. Any Python from 3.6 on reads this file, so it imports nothing of
cudnn_doctor and uses no newer syntax. The last line names the CUDA libraries that the process has mapped.
"""

import json
import os
import sys
import time
from importlib import import_module
from typing import Any, Callable  # noqa: UP035  collections.abc.Callable has no subscript before Python 3.9

TOLERANCE = {"fp32": 5e-3, "fp16": 3e-2, "bf16": 2e-1}  # of the largest value; fp32 may be TF32, 10 bits of fraction


class NotHere(Exception):  # noqa: N818  no error: the framework has no such work, or there is no GPU
    """The framework cannot do this work here, in words."""


def say(fd: int, **fields: object) -> None:
    """A line of JSON; where the descriptor is stdout, words for people."""
    if fd != 1:
        os.write(fd, json.dumps(fields).encode() + b"\n")
    elif "done" in fields:
        told = ", ".join(f"{name} {value}" for name, value in fields.items() if name != "done" and value != "")
        os.write(fd, f"{fields['done']}: {told}\n".encode("utf-8", "replace"))


def mapped() -> "list[str]":
    """CUDA libraries in this process."""
    found = set()
    with open("/proc/self/maps", "rb") as file:
        for line in file:
            path = line.partition(b"/")[2]
            name = path.rpartition(b"/")[2]
            if name.startswith((b"libcudnn", b"libcublas", b"libcudart", b"libcuda.so", b"libnvrtc")):
                found.add("/" + path.rstrip(b"\n").decode("utf-8", "replace"))
    return sorted(found)


class Torch:
    """PyTorch."""

    def __init__(self) -> None:
        self.torch = torch = import_module("torch")
        self.version = torch.__version__
        self.cudnn = str(torch.backends.cudnn.version() or "")
        self.gpu = torch.cuda.is_available()

    def dtype(self, name: str) -> Any:
        return {"fp32": self.torch.float32, "fp16": self.torch.float16, "bf16": self.torch.bfloat16}[name]

    def convolution(self, name: str) -> float:
        torch = self.torch
        torch.manual_seed(1)
        x, w = torch.randn(2, 16, 32, 32), torch.randn(16, 16, 3, 3)
        want = torch.nn.functional.conv2d(x, w, padding=1)
        dtype = self.dtype(name)
        got = torch.nn.functional.conv2d(x.cuda().to(dtype), w.cuda().to(dtype), padding=1)
        return float((got.float().cpu() - want).abs().max() / want.abs().max())

    def rnn(self, name: str) -> float:
        torch = self.torch
        torch.manual_seed(1)
        layer, x = torch.nn.LSTM(32, 32), torch.randn(8, 4, 32)
        with torch.no_grad():
            want = layer(x)[0]
            dtype = self.dtype(name)
            got = layer.cuda().to(dtype)(x.cuda().to(dtype))[0]
        return float((got.float().cpu() - want).abs().max() / want.abs().max())

    def attention(self, name: str) -> float:
        torch = self.torch
        if name == "fp32" or not hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
            raise NotHere("cuDNN's attention takes fp16 and bf16, from PyTorch 2.4 on")
        if torch.cuda.get_device_capability() < (8, 0):
            raise NotHere("cuDNN's attention needs compute capability 8.0")
        torch.manual_seed(1)
        q, k, v = (torch.randn(2, 4, 64, 64) for _ in range(3))
        want = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        dtype = self.dtype(name)
        for other in ("flash", "mem_efficient", "math"):
            getattr(torch.backends.cuda, f"enable_{other}_sdp")(False)
        torch.backends.cuda.enable_cudnn_sdp(True)
        q, k, v = (t.cuda().to(dtype) for t in (q, k, v))
        got = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return float((got.float().cpu() - want).abs().max() / want.abs().max())


class TensorFlow:
    """TensorFlow 2."""

    def __init__(self) -> None:
        self.tf = tensorflow = import_module("tensorflow")
        self.version = tensorflow.__version__
        self.cudnn = ""  # it says what it was built with, and not what it has loaded
        devices = tensorflow.config.list_physical_devices("GPU")
        for device in devices:
            tensorflow.config.experimental.set_memory_growth(device, True)
        self.gpu = bool(devices)

    def dtype(self, name: str) -> Any:
        return {"fp32": self.tf.float32, "fp16": self.tf.float16, "bf16": self.tf.bfloat16}[name]

    def convolution(self, name: str) -> float:
        tf = self.tf
        tf.random.set_seed(1)
        with tf.device("/CPU:0"):
            x, w = tf.random.normal((2, 32, 32, 16)), tf.random.normal((3, 3, 16, 16))
            want = tf.nn.conv2d(x, w, 1, "SAME")
        dtype = self.dtype(name)
        with tf.device("/GPU:0"):
            got = tf.cast(tf.nn.conv2d(tf.cast(x, dtype), tf.cast(w, dtype), 1, "SAME"), tf.float32)
        return float(tf.reduce_max(tf.abs(got - want)) / tf.reduce_max(tf.abs(want)))

    def rnn(self, name: str) -> float:
        if name != "fp32":
            raise NotHere("tried in fp32 alone")
        tf = self.tf
        tf.random.set_seed(1)
        with tf.device("/CPU:0"):
            layer, x = tf.keras.layers.LSTM(32, return_sequences=True), tf.random.normal((4, 8, 32))
            want = layer(x)
        with tf.device("/GPU:0"):
            got = layer(x)
        return float(tf.reduce_max(tf.abs(got - want)) / tf.reduce_max(tf.abs(want)))

    def attention(self, _: str) -> float:
        raise NotHere("TensorFlow has no attention by cuDNN outside of XLA")


class Jax:
    """JAX."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax = jax = import_module("jax")
        self.version = jax.__version__
        self.cudnn = ""
        self.gpu = jax.default_backend() == "gpu"

    def dtype(self, name: str) -> Any:
        jnp = import_module("jax.numpy")
        return {"fp32": jnp.float32, "fp16": jnp.float16, "bf16": jnp.bfloat16}[name]

    def error(self, function: Callable[..., Any], arguments: "list[Any]", name: str) -> float:
        jnp, jax = import_module("jax.numpy"), self.jax
        host = jax.devices("cpu")[0]
        want = jax.jit(function)(*[jax.device_put(a, host) for a in arguments])
        dtype = self.dtype(name)
        device = jax.devices("gpu")[0]
        got = jax.jit(function)(*[jax.device_put(a, device).astype(dtype) for a in arguments])
        got, want = (jax.device_put(t, host).astype(jnp.float32) for t in (got, want))
        return float(abs(got - want).max() / abs(want).max())

    def convolution(self, name: str) -> float:
        random = import_module("numpy").random.RandomState(1)
        x, w = random.randn(2, 16, 32, 32), random.randn(16, 16, 3, 3)
        pair = [a.astype("float32") for a in (x, w)]
        return self.error(lambda a, b: self.jax.lax.conv_general_dilated(a, b, (1, 1), "SAME"), pair, name)

    def rnn(self, _: str) -> float:
        raise NotHere("JAX's cuDNN RNN is experimental and is not tried")

    def attention(self, name: str) -> float:
        if name == "fp32" or not hasattr(self.jax.nn, "dot_product_attention"):
            raise NotHere("cuDNN's attention takes fp16 and bf16, from JAX 0.4.31 on")
        random = import_module("numpy").random.RandomState(1)
        three = [random.randn(2, 64, 4, 64).astype("float32") for _ in range(3)]
        attend = self.jax.nn.dot_product_attention

        def function(q: Any, k: Any, v: Any) -> Any:
            by = "cudnn" if str(q.dtype) != "float32" else "xla"
            return attend(q, k, v, implementation=by)

        return self.error(function, list(three), name)


class CuPy:
    """CuPy up to 13; from 14 on it has no cuDNN."""

    def __init__(self) -> None:
        self.cupy = cupy = import_module("cupy")
        self.version = cupy.__version__
        try:
            cudnn = import_module("cupy_backends.cuda.libs.cudnn")
        except ImportError as e:
            raise NotHere(f"CuPy {self.version} has no cuDNN here: {e}") from e
        self.cudnn = str(cudnn.getVersion())
        self.gpu = cupy.cuda.is_available()

    def convolution(self, name: str) -> float:
        if name == "bf16":
            raise NotHere("CuPy has no bf16")

        numpy, cudnn = import_module("numpy"), import_module("cupy.cudnn")
        random = numpy.random.RandomState(1)
        x, w = random.randn(2, 4, 8, 8).astype("float32"), random.randn(4, 4, 1, 1).astype("float32")
        want = numpy.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0])
        kind = {"fp32": "float32", "fp16": "float16"}[name]
        y = self.cupy.zeros(want.shape, kind)
        first, second = self.cupy.asarray(x.astype(kind)), self.cupy.asarray(w.astype(kind))
        cudnn.convolution_forward(
            first, second, None, y, (0, 0), (1, 1), (1, 1), 1, auto_tune=False, tensor_core="auto"
        )
        return float(abs(y.get().astype("float32") - want).max() / abs(want).max())

    def rnn(self, _: str) -> float:
        raise NotHere("tried by convolution alone")

    attention = rnn


FRAMEWORKS: "dict[str, Callable[[], Any]]" = {"torch": Torch, "tensorflow": TensorFlow, "jax": Jax, "cupy": CuPy}


def main(fd: int, name: str, works: "list[str]") -> int:
    """Says what the framework is, each work's result, and what is mapped; 1 where one failed."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]  # a script's own folder hides what has its names
    failed = 0
    say(fd, next="import")
    try:
        framework = FRAMEWORKS[name]()
    except NotHere as e:
        say(fd, done="import", skipped=str(e))
        say(fd, mapped=mapped())
        return 0
    except BaseException as e:  # whatever the environment's code raises
        say(fd, done="import", error=f"{type(e).__name__}: {e}")
        say(fd, mapped=mapped())
        return 1
    say(fd, done="import", version=framework.version, cudnn=framework.cudnn, gpu=framework.gpu)
    for work in works if framework.gpu else ():
        what, _, kind = work.partition("-")
        say(fd, next=work)
        start = time.time()
        try:
            error = getattr(framework, what)(kind or "fp32")
        except NotHere as e:
            say(fd, done=work, skipped=str(e))
            continue
        except BaseException as e:
            failed += 1
            say(fd, done=work, error=f"{type(e).__name__}: {e}")
            continue
        right = error <= TOLERANCE[kind or "fp32"]
        failed += not right
        say(fd, done=work, seconds=round(time.time() - start, 3), deviation=error, right=right)
    say(fd, mapped=mapped())
    return 1 if failed else 0


if __name__ == "__main__":
    code = main(int(sys.argv[1]), sys.argv[2], [w for w in sys.argv[3].split(",") if w])
    os._exit(code)  # without the framework's own end, which may hang on a broken GPU
