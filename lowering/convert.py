"""`convert`: the front door."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf

from lowering import jax_compat, rules  # noqa: F401  Registers the rules.
from lowering.core.folding import Folder
from lowering.core.interpreter import Interpreter
from lowering.errors import LoweringError
from lowering.formats import boundary
from lowering.frontend import arguments, gradient
from lowering.ops.dims import Dimensions
from lowering.passes.program import Program, trace
from lowering.targets import Target, resolve

# What else the trace of a function depends on.
_JAX_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)


def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    target: str | Target | None = None,
) -> Callable[..., Any]:
    """Turns a JAX function into a function on TensorFlow values.

    The result takes and returns pytrees with the structure of `fun_jax`'s. Its leaves may be
    tensors, variables, NumPy arrays and Python scalars; it returns tensors. It works eagerly,
    in a `tf.function`, with `jit_compile=True`, and in a SavedModel. As in JAX, 64-bit values
    are taken as 32-bit ones unless `JAX_ENABLE_X64` is set. PRNG keys are returned as the uint32
    words of their data, and `float0` zeros as int32.

    Args:
      fun_jax: a function that `jax.jit` accepts.
      polymorphic_shapes: which dimensions of the positional arguments are symbolic: a pytree
        prefix of the arguments with specifications such as "(b, 28, 28)", "(b, _, _)" or
        "(b, ...)", and None where the shape is known.
      polymorphic_constraints: constraints on dimension variables, such as "b >= 4".
      with_gradient: whether TensorFlow can differentiate the result. It then calls `jax.vjp`,
        so custom derivatives are respected. If False, an attempt raises an error.
      enable_xla: whether ops may be used that only a TensorFlow with XLA can run.
      target: who will run the ops: "xla" or "tf". By default "xla" if `enable_xla`, else "tf".

    Returns:
      The converted function. It raises
        TypeError: for an argument that is no array, or has a dtype JAX or TensorFlow lacks;
        ValueError: for shapes that do not fit `polymorphic_shapes`;
        UnsupportedError: for a primitive that the target cannot express;
        LoweringError: for any other failure to lower, or if called while JAX is tracing.

    Raises:
      TypeError: if `fun_jax` is not callable.
      ValueError: for an unknown target.
    """
    if not callable(fun_jax):
        raise TypeError(f"convert takes a JAX function, not {type(fun_jax).__name__}")
    resolved = resolve(enable_xla, target)
    traces: dict[Any, _Trace] = {}
    convert_vjp = functools.partial(
        convert, polymorphic_constraints=polymorphic_constraints, target=resolved
    )

    @functools.wraps(fun_jax, updated=())
    def fun_tf(*args: Any, **kwargs: Any) -> Any:
        if jax_compat.in_transformation():
            raise LoweringError(
                f"the conversion of {_name(fun_jax)} was called inside a JAX transformation "
                "(jit, grad, vmap, ...); call the JAX function itself there"
            )
        given = arguments.flatten(args, kwargs, polymorphic_shapes, polymorphic_constraints)
        key = given.key, *(getattr(jax.config, name) for name in _JAX_SETTINGS)
        if key not in traces:
            traces[key] = _Trace.of(fun_jax, given, convert_vjp)
        traced = traces[key]
        lower: gradient.Lower = functools.partial(_lower, traced, resolved, given)
        if with_gradient:
            lower = gradient.differentiable(lower, traced.vjp)
        else:
            lower = functools.partial(lower, without_gradient=_name(fun_jax))
        results = lower(*given.tensors)
        return jax.tree_util.tree_unflatten(traced.program.out_tree, results)

    # AutoGraph would rewrite the code of JAX, to no effect but a slow trace.
    fun_tf = tf.autograph.experimental.do_not_convert(fun_tf)
    setattr(fun_tf, "__signature__", arguments.signature(fun_jax))  # noqa: B010
    return fun_tf


@dataclasses.dataclass(frozen=True)
class _Trace:
    """What is kept for arguments of the same structure, shapes and dtypes.

    Attributes:
      program: the traced function.
      vjp: its gradient.
      folder: what has been folded in the program, so that it is folded once.
    """

    program: Program
    vjp: gradient.Vjp
    folder: Folder

    @classmethod
    def of(
        cls, fun: Callable[..., Any], given: arguments.Arguments, convert_vjp: Callable[..., Any]
    ) -> "_Trace":
        """Traces a function."""
        program = trace(fun, given.tree, given.avals)
        out_avals = program.jaxpr.out_avals
        vjp = gradient.Vjp(fun, given.tree, given.avals, out_avals, convert_vjp)
        return cls(program, vjp, Folder())


def _lower(
    traced: _Trace,
    target: Target,
    given: arguments.Arguments,
    *tensors: tf.Tensor,
    without_gradient: str = "",
) -> list[tf.Tensor]:
    """Lowers a program in the mode that TensorFlow is in; returns its results.

    Args:
      traced: the program.
      target: who runs the ops.
      given: the arguments.
      *tensors: the arguments as tensors.
      without_gradient: the name of the function, if an attempt to differentiate is an error.
    """
    jaxpr = traced.program.jaxpr
    dimensions = Dimensions(dataclasses.replace(given, tensors=tensors).dimension_values())
    interpreter = Interpreter(target, dimensions, traced.program, traced.folder)
    operands = [boundary.enter(x, a.dtype) for x, a in zip(tensors, given.avals, strict=True)]
    results = interpreter.run_to_tensors(jaxpr, *operands)
    if without_gradient:
        results = gradient.prevent(results, without_gradient)
    return [boundary.leave(x, a.dtype) for x, a in zip(results, jaxpr.out_avals, strict=True)]


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", type(fun).__name__)
