"""Which dtypes the TensorFlow kernels of an op accept on the CPU.

TensorFlow's own registry answers, so that a rule widens exactly where a kernel is missing.
"""

import functools

import tensorflow as tf
from tensorflow.python.framework import kernels as tf_kernels

# Dtypes that an op's XLA kernel refuses, or its CPU kernel although it is registered for them.
_NO_SCAN = frozenset(
    {tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128}
)
_LACKS: dict[str, frozenset[tf.DType]] = {
    "Cumprod": _NO_SCAN,
    "Cumsum": _NO_SCAN,
    "Tile": frozenset({tf.uint16}),
    "TopKV2": frozenset({tf.uint16}),
}


@functools.cache
def _cpu_dtypes(op: str, attr: str) -> frozenset[tf.DType] | None:
    """The dtypes of `attr` in the CPU kernels of `op`; None if they accept every dtype."""
    dtypes: set[tf.DType] = set()
    for kernel in tf_kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type != "CPU":
            continue
        allowed = [c.allowed_values.list.type for c in kernel.constraint if c.name == attr]
        if not allowed:
            return None
        dtypes.update(tf.dtypes.as_dtype(dtype) for dtype in allowed[0])
    return frozenset(dtypes)


@functools.cache
def supports(op: str, dtype: tf.DType, attr: str = "T") -> bool:
    """Whether `op` runs with type attribute `attr` set to `dtype`, in every mode."""
    if dtype in _LACKS.get(op, ()):
        return False
    dtypes = _cpu_dtypes(op, attr)
    return dtypes is None or dtype in dtypes
