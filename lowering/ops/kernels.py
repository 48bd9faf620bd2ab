"""Which dtypes the kernels of an op accept: those of TensorFlow on the CPU, or of another runtime.

TensorFlow's own registry answers, so that a rule widens exactly where a kernel is missing. What a
runtime of graphs takes stands in its table.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import kernels as tf_kernels
from tensorflow.python.framework import op_callbacks

from lowering import targets
from lowering.errors import UnsupportedError
from lowering.targets import TF, Target

# The name of GatherV2 in the tables where it has batches, as runtimes have other code for that.
BATCHED_GATHER = "GatherV2 of batches"

# Whether an op that the runtime is known to lack is an error.
_IS_CHECKED: contextvars.ContextVar[bool] = contextvars.ContextVar("is_checked", default=True)
# The callbacks that check ops now, each with its target.
_CHECKS: contextvars.ContextVar[tuple[tuple[Callable[..., None], Target], ...]] = (
    contextvars.ContextVar("checks", default=())
)


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


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """A context in which ops may be made that the runtime is known to lack.

    It is for runtimes with TensorFlow's kernels beside their own, for finding out what is lacking,
    and for ops of which the converter makes others, or that nothing may use.
    """
    token = _IS_CHECKED.set(False)
    try:
        yield
    finally:
        _IS_CHECKED.reset(token)


@contextlib.contextmanager
def checked(target: Target) -> Iterator[None]:
    """A context in which an op of a graph that the target is known to lack is an error.

    What TensorFlow runs while the graph is made is of another target.
    """
    if target.has_tensorflow_kernels or not _IS_CHECKED.get():
        yield
        return

    def see(op, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is not None and (inputs or outputs):
            named = dict(zip(attrs[::2], attrs[1::2], strict=True))
            _check(target, op, (inputs or outputs)[0].dtype, named)

    op_callbacks.add_op_callback(see)
    token = _CHECKS.set((*_CHECKS.get(), (see, target)))
    try:
        yield
    finally:
        _CHECKS.reset(token)
        op_callbacks.remove_op_callback(see)


def is_seen_by_others() -> bool:
    """Whether callbacks look at ops that are not those of `checked`."""
    callbacks = context.context().op_callbacks
    return bool(callbacks) and list(callbacks) != [see for see, _ in _CHECKS.get()]


def check(op: str, operand: tf.Tensor, attrs: Mapping[str, Any]) -> None:
    """Checks an op that callbacks do not see, by its first operand; see `checked`."""
    for _, target in _CHECKS.get():
        _check(target, op, operand.dtype, attrs)


def _check(target: Target, op: str, dtype: tf.DType, attrs: Mapping[str, Any]) -> None:
    if not _IS_CHECKED.get() or targets.current() is not target:
        return
    op = listed(op, attrs)
    if target.lacks(op, dtype.name):
        raise UnsupportedError(refusal(target, op, dtype.name))


def refusal(target: Target, op: str, dtype: str) -> str:
    """Why an op of a graph is an error, and what to do, as the end of a message."""
    lacks = "lacks"
    if not target.has_op(op):
        lacks = f"has since version {target.ops_since[op]} of its ops; this is {target.version}"
    return (
        f"it needs {op} of {dtype}, which {target.name} {lacks}. Compute it otherwise, or before "
        "or after what is exported; a SavedModel has all ops"
    )


def listed(op: str, attrs: Mapping[str, Any]) -> str:
    """The name that an op with some attributes has in the tables of runtimes."""
    return BATCHED_GATHER if op == "GatherV2" and attrs.get("batch_dims") else op


def supports(
    op: str, dtype: tf.DType, attr: str = "T", attrs: Mapping[str, Any] | None = None
) -> bool:
    """Whether `op` runs with type attribute `attr` set to `dtype`, in every mode.

    `attrs` are other attributes, which matter to some runtimes.
    """
    target = targets.current()
    if target.is_consumer:
        op = listed(op, attrs or {})
        return dtype.name in target.ops.get(op, ()) if attr else op in target.ops
    return _tensorflow_supports(op, dtype, attr)


def casts(source: tf.DType, to: tf.DType) -> bool:
    """Whether a runtime converts between two dtypes; TensorFlow does."""
    target = targets.current()
    return not target.is_consumer or f"{source.name}->{to.name}" in target.ops.get("Cast", ())


@functools.cache
def _tensorflow_supports(op: str, dtype: tf.DType, attr: str) -> bool:
    if dtype.name in TF.failing_kernels.get(op, ()):
        return False
    dtypes = _cpu_dtypes(op, attr)
    return dtypes is None or dtype in dtypes
