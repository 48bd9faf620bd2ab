"""`convert`: the front door."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import (
    jax_compat,
    rules,  # noqa: F401  Registers the rules.
)
from lowering.core.interpreter import Interpreter
from lowering.errors import LoweringError
from lowering.formats import boundary
from lowering.frontend import containers, gradient, polymorphic
from lowering.ops import dims, dtypes
from lowering.passes.trace import Program, trace
from lowering.targets import Target, resolve


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
    # The trace of each combination of shapes, with its gradient.
    programs: dict[Any, tuple[Program, gradient.Vjp]] = {}
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
        args, kwargs = containers.plain(args), containers.plain(kwargs)
        leaves_with_path, in_tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
        arguments = [_Argument(_path(path), leaf) for path, leaf in leaves_with_path]
        shapes = polymorphic.symbolic_shapes(
            args, polymorphic_shapes, polymorphic_constraints, _static_shape
        )
        shapes += [argument.static_shape() for argument in arguments[len(shapes) :]]
        avals = tuple(a.aval(shape) for a, shape in zip(arguments, shapes, strict=True))
        tensors = [argument.tensor() for argument in arguments]
        key = (in_tree, tuple((a.shape, a.dtype, a.weak_type) for a in avals), _jax_settings())
        if key not in programs:
            program = trace(fun_jax, in_tree, avals)
            vjp = gradient.Vjp(fun_jax, in_tree, avals, program.jaxpr.out_avals, convert_vjp)
            programs[key] = program, vjp
        program, vjp = programs[key]

        def lower(*tensors: tf.Tensor) -> list[tf.Tensor]:
            dimensions = dims.Dimensions(polymorphic.dimension_values(shapes, tensors))
            interpreter = Interpreter(resolved, dimensions, program)
            operands = [boundary.enter(x, a.dtype) for x, a in zip(tensors, avals, strict=True)]
            results = interpreter.run_to_tensors(program.jaxpr, *operands)
            if not with_gradient:
                results = gradient.prevent(results, _name(fun_jax))
            return [
                boundary.leave(x, aval.dtype)
                for x, aval in zip(results, program.jaxpr.out_avals, strict=True)
            ]

        if with_gradient:
            lower = gradient.differentiable(lower, vjp)
        return jax.tree_util.tree_unflatten(program.out_tree, lower(*tensors))

    # AutoGraph would rewrite the code of JAX, to no effect but a slow trace.
    fun_tf = tf.autograph.experimental.do_not_convert(fun_tf)
    fun_tf.__signature__ = _signature(fun_jax)
    return fun_tf


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _Argument:
    """One leaf of the arguments: its place, abstract value and tensor."""

    def __init__(self, path: str, leaf: Any):
        self.path = path
        self.leaf = leaf
        if isinstance(leaf, jax.core.Tracer):
            raise LoweringError(f"argument {path} is a JAX tracer; pass a value of TensorFlow")
        try:
            if isinstance(leaf, tf.Tensor | tf.Variable):
                source = leaf.dtype.base_dtype.as_numpy_dtype
                if source in (object, np.str_, np.bytes_) or leaf.dtype == tf.string:
                    raise TypeError
                self.weak_type = False
            elif isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
                source = jax.dtypes.result_type(leaf)
                self.weak_type = not isinstance(leaf, np.generic | np.ndarray | bool)
            elif isinstance(leaf, jax.Array):
                source = leaf.dtype
                self.weak_type = jax.typeof(leaf).weak_type
            else:
                raise TypeError
            self.dtype = source if dtypes.is_key(source) else jax.dtypes.canonicalize_dtype(source)
            self.tf_dtype = dtypes.to_tf_argument(self.dtype)
        except TypeError as error:
            detail = f": {error}" if str(error) else ""
            kind = getattr(getattr(leaf, "dtype", None), "name", type(leaf).__name__)
            raise TypeError(
                f"argument {path} has type {kind}, which is no JAX array{detail}"
            ) from None

    def static_shape(self) -> tuple[int, ...]:
        shape = _static_shape(self.leaf)
        if None in shape:
            raise ValueError(
                f"argument {self.path} has the unknown shape {tf.TensorShape(shape)}; "
                "name its dimensions with polymorphic_shapes"
            )
        return shape

    def aval(self, shape: tuple[Any, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, self.dtype, weak_type=self.weak_type)

    def tensor(self) -> tf.Tensor:
        leaf = self.leaf
        if isinstance(leaf, jax.Array):
            leaf = np.asarray(jax.random.key_data(leaf) if dtypes.is_key(leaf.dtype) else leaf)
        if isinstance(leaf, tf.Tensor | tf.Variable):
            tensor = tf.convert_to_tensor(leaf)
            return tensor if tensor.dtype == self.tf_dtype else tf.cast(tensor, self.tf_dtype)
        # Not shared like other constants: the caller may change an array after the call.
        return tf.constant(np.asarray(leaf, self.tf_dtype.as_numpy_dtype))


def _static_shape(leaf: Any) -> tuple[int | None, ...]:
    if isinstance(leaf, tf.Tensor | tf.Variable):
        if leaf.shape.rank is None:
            raise ValueError("an argument of unknown rank cannot be lowered")
        return tuple(leaf.shape.as_list())
    return np.shape(leaf)


def _jax_settings() -> Any:
    """What else the trace of a function depends on."""
    config = jax.config
    return (
        config.jax_enable_x64,
        config.jax_default_matmul_precision,
        config.jax_numpy_dtype_promotion,
        config.jax_default_prng_impl,
        config.jax_threefry_partitionable,
    )


def _path(path: Sequence[Any]) -> str:
    (position, *rest) = path
    return ("args" if position.idx == 0 else "kwargs") + jax.tree_util.keystr(tuple(rest))


def _signature(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of `fun` without defaults, which a `tf.function` would pass as tensors."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except ValueError:  # Some builtins have no signature.
        parameters = ()
    kept = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    if len(kept) < len(parameters) or not parameters:
        taken = {parameter.name for parameter in kept}
        for name, kind in zip(("args", "kwargs"), _VARIADIC):
            while name in taken:
                name += "_"
            kept.append(inspect.Parameter(name, kind))
    return inspect.Signature(sorted(kept, key=lambda parameter: parameter.kind))


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", type(fun).__name__)
