"""The API of `jax.experimental.jax2tf` as it was when it made TensorFlow ops.

A program that was written for it needs one other import, `from lowering import jax2tf`. Programs of
others, which import JAX's module, get these functions while `installed()` lasts.
"""

import importlib
import math
import sys
import threading
import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering.convert import convert as to_tensorflow
from lowering.frontend import arguments
from lowering.frontend import call_tf as calls
from lowering.frontend.replacement import Replacement
from lowering.targets import PORTABLE, XLA

__all__ = [
    "DisabledSafetyCheck",
    "PolyShape",
    "call_tf",
    "convert",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "install",
    "installed",
    "split_to_logical_devices",
    "uninstall",
]

_THEIRS = "jax.experimental.jax2tf"
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class PolyShape(tuple):
    """A shape specification as a tuple: dimension variables, sizes, "_" and `...`.

    `PolyShape("b", 3, ...)` is what the string "(b, 3, ...)" is, which is the usual way to say it.

    Raises:
      ValueError: for a dimension of another type.
    """

    def __new__(cls, *dims: Any) -> "PolyShape":
        for dim in dims:
            if not isinstance(dim, int | str) and dim is not ...:
                raise ValueError(
                    f"a dimension of PolyShape is a string, an integer or ..., not {dim!r}"
                )
        return super().__new__(cls, dims)

    def __str__(self) -> str:
        return f"({', '.join('...' if dim is ... else str(dim) for dim in self)})"


class DisabledSafetyCheck(jax.export.DisabledSafetyCheck):
    """A check that is left out; see `jax.export.DisabledSafetyCheck`.

    A graph of ops has only one of these checks: that sizes fit their specifications.
    """

    @classmethod
    def shape_assertions(cls) -> "DisabledSafetyCheck":
        """Leaves out the ops that check sizes; see `check_shapes` of `lowering.convert`."""
        return cls("shape_assertions")


def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    native_serialization: bool = False,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Turns a JAX function into a function on TensorFlow values, by one op for each primitive.

    Args:
      fun_jax: a function that `jax.jit` accepts.
      polymorphic_shapes: which dimensions of the positional arguments are symbolic: a pytree
        prefix of the arguments with strings such as "(b, 28, _)" or "(b, ...)", instances of
        `PolyShape`, and None where the shape is known.
      polymorphic_constraints: constraints on dimension variables, such as "b >= 4".
      with_gradient: whether JAX computes the gradients of the result. If False, an attempt to
        differentiate it raises a `LookupError`; what is made for converters, without XLA, has the
        gradients of its ops.
      enable_xla: if True, the target is "xla", for a TensorFlow with XLA: the numbers are JAX's. If
        False, it is "portable": natural ops, which converters such as that of TF Lite accept. They
        may treat NaN and the sign of zero as these ops do, and no op checks sizes when the graph
        runs, as converters refuse it. For JAX's numbers without XLA use `lowering.convert` with
        `target="tf"`.
      native_serialization: has to be False, unless these functions are installed.
      native_serialization_platforms: names among "cpu", "cuda", "rocm" and "tpu". Ops run on each
        of them, so that it changes nothing.
      native_serialization_disabled_checks: instances of `DisabledSafetyCheck`. With
        `shape_assertions()` among them, sizes are not checked when the graph runs; the others are
        about native serialization, and change nothing.

    Returns:
      The converted function; see `lowering.convert`, also for what it raises. Called while JAX is
      tracing it raises a ValueError.

    Raises:
      TypeError: if `fun_jax` is not callable.
      ValueError: for `native_serialization=True`, and for unknown platforms.
    """
    # Other libraries ask for the default of JAX's module. Whoever has installed this one in its
    # place wants ops from them.
    if native_serialization and not _REPLACEMENT.is_active:
        raise ValueError(
            "lowering.jax2tf makes TensorFlow ops. For native_serialization=True use "
            "jax.experimental.jax2tf, JAX's own module, or jax.export"
        )
    platforms = native_serialization_platforms or ()
    if isinstance(platforms, str) or not set(platforms) <= set(_PLATFORMS):
        raise ValueError(
            f"native_serialization_platforms is a sequence of names among {_PLATFORMS}, not "
            f"{native_serialization_platforms!r}"
        )
    disabled = set(map(str, native_serialization_disabled_checks))
    is_checked = str(DisabledSafetyCheck.shape_assertions()) not in disabled
    return to_tensorflow(
        fun_jax,
        polymorphic_shapes=_as_strings(polymorphic_shapes),
        polymorphic_constraints=polymorphic_constraints,
        with_gradient=with_gradient,
        target=XLA if enable_xla else PORTABLE,
        check_shapes=enable_xla and is_checked,
    )


def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = calls.INFERRED,
    call_tf_graph: bool = False,
) -> Callable[..., Any]:
    """Turns a TensorFlow function into a JAX function; see `lowering.call_tf`.

    Args:
      callable_tf: a function of tensors, or of pytrees of them.
      has_side_effects: whether JAX has to run each call, even if its results are not used.
      ordered: whether calls have to run in the order of the program.
      output_shape_dtype: what `callable_tf` returns, as a pytree of objects with `shape` and
        `dtype`. By default TensorFlow finds out.
      call_tf_graph: what is converted calls `callable_tf` in its graph, whatever this is.

    Returns:
      The JAX function.

    Raises:
      TypeError: if `callable_tf` is not callable.
    """
    del call_tf_graph
    return calls.call_tf(
        callable_tf,
        has_side_effects=has_side_effects,
        ordered=ordered,
        output_shape_dtype=output_shape_dtype,
    )


def dtype_of_val(val: Any) -> tf.DType:
    """The dtype that a converted function takes a value in.

    Args:
      val: a tensor, variable, array or Python scalar. 64-bit values are taken as 32-bit ones unless
        `JAX_ENABLE_X64` is set.

    Returns:
      The dtype, such as `tf.float32` for 3.14.

    Raises:
      TypeError: for a value that JAX or TensorFlow lacks.
    """
    return arguments.dtype_of(val)


def eval_polymorphic_shape(
    fun_jax: Callable[..., Any], *, polymorphic_shapes: Any = None
) -> Callable[..., tuple[Any, Any]]:
    """Finds the shapes of the results of a JAX function for symbolic shapes of its arguments.

    Args:
      fun_jax: a JAX function.
      polymorphic_shapes: as for `convert`.

    Returns:
      A function of positional arguments that have a `shape` and a `dtype`. It returns two pytrees
      with the structure of the results: of `jax.ShapeDtypeStruct`, and of specifications, such as
      "(a, c)", that `convert` takes for a function of these results.
    """

    def evaluate(*args: Any) -> tuple[Any, Any]:
        specifications = _as_strings(polymorphic_shapes)
        structs = jax.export.symbolic_args_specs(args, specifications)
        results = jax.eval_shape(fun_jax, *structs)
        return results, jax.tree.map(lambda result: str(result.shape), results)

    return evaluate


def split_to_logical_devices(tensor: Any, partition_dimensions: Sequence[int] | None) -> tf.Tensor:
    """A tensor with an annotation for XLA on how it is split over devices.

    Args:
      tensor: a tensor of a graph.
      partition_dimensions: in how many parts each dimension is split; their product is the number
        of devices. None for a tensor that each device has as a whole.

    Returns:
      The tensor.
    """
    from tensorflow.python.compiler.xla.experimental import xla_sharding

    if partition_dimensions is None:
        return xla_sharding.replicate(tensor, use_sharding_op=True)
    devices = np.arange(math.prod(partition_dimensions)).reshape(partition_dimensions)
    return xla_sharding.tile(tensor, devices, use_sharding_op=True)


def installed() -> AbstractContextManager[None]:
    """A context in which programs that import `jax.experimental.jax2tf` get these functions.

    It is for libraries whose code is not yours. They may have imported the module before: its
    functions are replaced, for all threads, and restored when the last such context ends. What
    was taken out of the module before (`from jax.experimental.jax2tf import convert`) stays JAX's.
    `native_serialization=True`, which libraries may ask for by default, is taken as False there.
    """
    return _REPLACEMENT.during()


def install() -> None:
    """Does for good, or until `uninstall()`, what `installed()` does for a while."""
    with _INSTALLING:
        if not _INSTALLED:
            _REPLACEMENT.want()
            _INSTALLED.append(True)


def uninstall() -> None:
    """Undoes `install()`; does nothing if there is nothing to undo."""
    with _INSTALLING:
        if _INSTALLED:
            _INSTALLED.pop()
            _REPLACEMENT.release()


# Whether `install` was called, as the only element.
_INSTALLED: list[bool] = []
_INSTALLING = threading.Lock()


def _as_strings(polymorphic_shapes: Any) -> Any:
    """Specifications without `PolyShape`."""
    return jax.tree.map(
        lambda spec: str(spec) if isinstance(spec, PolyShape) else spec,
        polymorphic_shapes,
        is_leaf=lambda spec: isinstance(spec, PolyShape),
    )


def _replaced() -> list[tuple[dict[str, Any], str, Any]]:
    """The names in JAX's module and its submodules that are replaced, and their values.

    The module may be gone, in a later version of JAX; then a new one takes its place.
    """
    values = {name: globals()[name] for name in _OFFERED}
    try:
        module = importlib.import_module(_THEIRS)
    except ImportError:
        module = types.ModuleType(_THEIRS, __doc__)
        vars(module).update(values)
        parent = importlib.import_module("jax.experimental")
        return [(vars(parent), "jax2tf", module), (sys.modules, _THEIRS, module)]
    submodules = [sys.modules[name] for name in sys.modules if name.startswith(f"{_THEIRS}.")]
    return [
        (vars(owner), name, value)
        for owner in (module, *submodules)
        for name, value in values.items()
        if name in vars(owner)
    ]


# Names that JAX's module has, too.
_OFFERED = [name for name in __all__ if name not in ("install", "installed", "uninstall")]

_REPLACEMENT = Replacement(_replaced)
