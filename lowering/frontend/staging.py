"""TensorFlow functions as parts of a program that JAX traces and compiles.

A function becomes a graph for the shapes and dtypes of its operands. The graph tells what the
results are. When JAX compiles the program, XLA compiles the graph for it, if it can.
"""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat
from lowering.errors import LoweringError
from lowering.frontend import callee_transforms, callees, effects, exchange, inference
from lowering.frontend.callees import Callee, Function
from lowering.jax_compat import Compiled
from lowering.ops import dtypes, modes

_PLATFORMS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


@dataclasses.dataclass(frozen=True)
class Graph:
    """A function of TensorFlow for operands of given shapes and dtypes.

    Attributes:
      function: the function.
      concrete: its graph.
      structure: the structure of what the function of the user returns.
      stateful: the types of the ops in it that do or depend on something else than they return.
    """

    function: Any
    concrete: Any
    structure: Any
    stateful: frozenset[str]

    @property
    def writing(self) -> list[str]:
        """The types of the ops that write to variables."""
        return effects.writing(self.stateful)

    @property
    def has_effects(self) -> bool:
        """Whether it may have side effects."""
        return bool(effects.acting(self.stateful))


def _graph(callee: Callee, operand_avals: Sequence[Any], compiled: bool) -> Graph:
    """The graph of a function, which is kept with it.

    Args:
      callee: the function.
      operand_avals: the shapes and dtypes of its operands; dimensions may be symbolic.
      compiled: whether XLA is to compile it.
    """
    specs = tuple(map(_spec, operand_avals))
    graphs = callee.root.origin.graphs
    return graphs.get((callee, specs, compiled), lambda: _new_graph(callee, specs, compiled))


def _new_graph(callee: Callee, specs: Sequence[tf.TensorSpec], compiled: bool) -> Graph:
    function = tf.function(lambda *x: callee(*x), autograph=False, jit_compile=compiled)
    # The graph is made outside of the one that is being made now.
    with modes.eagerly(), callees.observed(callee.root) as structures:
        try:
            concrete = function.get_concrete_function(*specs)
        except (TypeError, LookupError) as error:
            if callee_transforms.is_out_of_scope(error):
                raise callee_transforms.out_of_scope(callee) from error
            raise
    if not all(tf.is_tensor(x) and hasattr(x, "numpy") for x in concrete.captured_inputs):
        # Such as the custom gradients of a loaded model that was saved without them refer to.
        raise callee_transforms.out_of_scope(callee)
    return Graph(function, concrete, structures[0], frozenset(effects.stateful_ops(concrete.graph)))


def _any_graph(callee: Callee, operand_avals: Sequence[Any]) -> Graph:
    """The graph of a function for XLA, or for TensorFlow's kernels if XLA cannot compile it."""
    try:
        return _graph(callee, operand_avals, compiled=True)
    except LoweringError:  # What is converted from JAX may have parts that XLA cannot compile.
        return _graph(callee, operand_avals, compiled=False)


def variables(callee: Callee, operand_avals: Sequence[Any]) -> Sequence[tf.Variable] | None:
    """The trainable variables that a function reads; None if it cannot be traced."""
    try:
        return _any_graph(callee, operand_avals).concrete.graph.trainable_variables
    except Exception:  # What cannot be traced may still run op by op.
        return None


def structure(function: Function, operand_avals: Sequence[Any]) -> Any:
    """The structure of what the function of the user returns."""
    return _any_graph(function, operand_avals).structure


def results(callee: Callee, operand_avals: Sequence[Any]) -> Sequence[Any]:
    """The shapes and dtypes of the results of a function, as `jax.ShapeDtypeStruct`.

    Raises:
      ValueError: if TensorFlow does not know the shapes.
    """
    made = _any_graph(callee, operand_avals)
    outputs = made.concrete.outputs
    shapes: Any = [y.shape for y in outputs]
    if not all(shape.is_fully_defined() for shape in shapes):
        shapes = inference.symbolic_shapes(operand_avals, lambda known: _shapes(callee, known))
    if shapes is None:
        found = ", ".join(str(y.shape) for y in outputs)
        raise ValueError(
            f"call_tf cannot know the shapes of the results of {callee.root.origin.name} while "
            f"JAX traces: TensorFlow says {found}. Declare them with output_shape_dtype, or call "
            "the function outside of jit, scan and the like"
        )
    return [
        jax.ShapeDtypeStruct(tuple(shape), y.dtype.as_numpy_dtype)
        for shape, y in zip(shapes, outputs, strict=True)
    ]


def effect(callee: Callee, operand_avals: Sequence[Any], effect: str | None) -> str | None:
    """The side effect of a call; None if it is known to have none.

    A call without a side effect may be left out if nothing needs its results, and JAX calls it far
    faster.

    Args:
      callee: the function.
      operand_avals: the shapes and dtypes of its operands.
      effect: what it may do: None, "unordered" or "ordered".
    """
    if effect is None:
        return None
    try:
        return effect if _any_graph(callee, operand_avals).has_effects else None
    except Exception:  # What cannot be traced may still run op by op.
        return effect


def check(function: Function, operand_avals: Sequence[Any]) -> None:
    """Raises a `ResultError` if a function is known not to return what was declared."""
    try:
        _any_graph(function, operand_avals)
    except callees.ResultError:
        raise
    except Exception:  # What cannot be traced may still run op by op.
        return


def _shapes(callee: Callee, operand_avals: Sequence[Any]) -> list[Sequence[int]] | None:
    """The shapes of results, if they are known."""
    try:
        outputs = _new_graph(callee, list(map(_spec, operand_avals)), False).concrete.outputs
    except Exception:  # Not all sizes need make sense to the function.
        return None
    if not all(y.shape.is_fully_defined() for y in outputs):
        return None
    return [y.shape.as_list() for y in outputs]


def compiled(
    platforms: Sequence[str],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    callee: Callee,
    **_: Any,
) -> Compiled | Callable[..., Any] | None:
    """A function as XLA has compiled it for a JAX program, or one of arrays to call back.

    None if the function has neither results nor side effects.

    Raises:
      ValueError: if the function writes to variables.
      LookupError: if it is a derivative that TensorFlow does not have.
      NotImplementedError: if shapes are symbolic.
    """
    name = callee.root.origin.name
    if not all(avals.is_static(a.shape) for a in (*operand_avals, *result_avals)):
        raise NotImplementedError(
            f"JAX cannot compile call_tf of {name} for symbolic shapes. Use lowering.convert, "
            "which calls the function of TensorFlow in the graph"
        )
    try:
        return _compiled(platforms, operand_avals, result_avals, callee)
    except _WritesVariablesError as error:
        raise ValueError(
            f"call_tf cannot call {name} in a program that JAX compiles, because it writes to "
            f"variables ({error}). Pass their values as arguments and return the new ones"
        ) from None
    except Exception as error:  # XLA and TensorFlow raise all kinds of errors.
        if isinstance(error, LookupError | callees.ResultError):
            is_scope_error = isinstance(error, callee_transforms.ScopeError)
            if not (is_scope_error and callee_transforms.has_two_ways(callee)):
                raise
        first_line = str(error).strip().split("\n")[0]
        reason = f"{type(error).__name__}: {first_line}"
    origin = callee.root.origin
    if not origin.has_warned:
        origin.has_warned = True
        warnings.warn(
            f"call_tf runs {name} by a callback into Python each time the compiled program "
            f"calls it, because XLA cannot compile it. {reason}",
            stacklevel=2,
        )
    return _callback(callee, operand_avals, result_avals)


class _WritesVariablesError(Exception):
    """A function writes to variables."""


def _compiled(
    platforms: Sequence[str], operand_avals: Sequence[Any], result_avals: Sequence[Any], callee: Any
) -> Compiled | None:
    """A function as XLA has compiled it; None if it has neither results nor side effects.

    Raises:
      _WritesVariablesError: if it writes to variables.
      Exception: if XLA cannot compile it; it may be of any type.
    """
    (platform,) = platforms
    made = _graph(callee, operand_avals, compiled=True)
    if made.writing:
        raise _WritesVariablesError(", ".join(made.writing))
    if not result_avals:
        if not made.has_effects:
            return None
        raise ValueError("it returns nothing, so that XLA would leave it out")
    with modes.eagerly():
        specs = tuple(map(_spec, operand_avals))
        ir = made.function.experimental_get_compiler_ir(*specs)
        hlo = ir(stage="hlo_serialized", platform_name=_PLATFORMS.get(platform, platform))
    if jax_compat.takes_bounds_for_sizes(hlo):
        raise ValueError("sizes in it depend on values, of which XLA knows no more than bounds")
    return Compiled(hlo, list(_captured(made.concrete)))


def _captured(concrete: Any) -> Iterable[np.ndarray]:
    """The values that a graph has captured; those of variables are read now."""
    variables = {id(v.handle): v for v in concrete.graph.variables}
    for captured in concrete.captured_inputs:
        value = variables.get(id(captured), captured)
        yield value.numpy()


def _callback(
    callee: Callee, operand_avals: Sequence[Any], result_avals: Sequence[Any]
) -> Callable[..., Any]:
    """A function of arrays that calls a function of TensorFlow."""
    run: Callable[..., Any] = callee
    with contextlib.suppress(Exception):  # What cannot be traced may still run op by op.
        run = _graph(callee, operand_avals, compiled=False).concrete

    def call_back(*arrays: Any) -> list[np.ndarray]:
        with modes.eagerly():
            operands = [exchange.to_tensor(np.asarray(x)) for x in arrays]
            tensors = tf.nest.flatten(run(*operands))
        returned = [np.asarray(y.numpy()) for y in tensors if isinstance(y, tf.Tensor)]
        for i, (y, aval) in enumerate(zip(returned, result_avals, strict=True)):
            if y.shape != aval.shape or y.dtype != aval.dtype:
                raise ValueError(
                    f"result {i} of {callee.root.origin.name} is {y.dtype}{list(y.shape)}, not "
                    f"{aval.dtype}{list(aval.shape)}"
                )
        return returned

    return call_back


def _spec(aval: Any) -> tf.TensorSpec:
    return tf.TensorSpec(avals.static_shape(aval.shape), dtypes.to_tf_argument(aval.dtype))
