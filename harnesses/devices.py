"""The devices of cells: where TensorFlow runs them, and where JAX computes what is expected."""

import contextlib
from collections.abc import Iterator

import jax
import tensorflow as tf

# The device of each kind that runs cells, by the name that TensorFlow has for it.
PLACES = {kind: f"/device:{kind.upper()}:0" for kind in ("cpu", "gpu", "tpu")}


class DeviceError(RuntimeError):
    """TensorFlow has no such device."""


def reference() -> contextlib.AbstractContextManager[object]:
    """A context in which JAX computes on the first CPU, whatever other devices it has."""
    return jax.default_device(jax.local_devices(backend="cpu")[0])


@contextlib.contextmanager
def running_on(kind: str) -> Iterator[None]:
    """A context in which TensorFlow runs eager ops, and whole functions, on a device of a kind.

    Ops for which the device has no kernel run on the CPU, as they do for users.

    Raises:
      DeviceError: if there is none. TensorFlow itself would use the CPU and say nothing.
    """
    place = PLACES[kind]
    if place not in {device.name for device in tf.config.list_logical_devices()}:
        raise DeviceError(f"TensorFlow finds no device {kind!r} on this machine")
    with tf.device(place):
        yield
