"""`lowering.convert`, which makes a TensorFlow function of a JAX function."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import tensorflow as tf

from lowering import boundary, callables, jax_compat, plugins, rules  # noqa: F401  Registers the rules.
from lowering.caches import Bounded
from lowering.core.caches import ProgramCaches
from lowering.core.folding import Folder
from lowering.core.interpreter import Interpreter
from lowering.errors import TransformationError
from lowering.frontend import (
    arguments,
    checks,
    closures,
    functions,
    gradient,
    naming,
    python_values,
)
from lowering.frontend.eager_calls import EagerCalls, Prevent
from lowering.ops import constants, kernels, modes
from lowering.ops.dims import Dimensions
from lowering.passes import pipeline
from lowering.passes.program import Program, trace
from lowering.targets import Mode, Target, lowering_for, resolve

# How many traces a converted function keeps. They are freed with the function.
_TRACES = 256


def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    target: str | Target | None = None,
    check_shapes: bool = True,
) -> Callable[..., Any]:
    """Turns a JAX function into a function on TensorFlow values.

    The result takes and returns pytrees with the structure of `fun_jax`'s. Its leaves may be
    tensors, variables, NumPy arrays and Python scalars; it returns tensors. It works eagerly,
    in a `tf.function`, with `jit_compile=True`, and in a SavedModel. The third eager call with
    arguments of the same shapes and dtypes makes a function of TensorFlow, which runs from then on
    in place of single ops; programs that call back into Python stay as they are. As in JAX, 64-bit
    values are taken as 32-bit ones unless `JAX_ENABLE_X64` is set. PRNG keys are returned as their
    key data (uint32). Results of dtype `float0`, the derivatives of integers, are False, as in
    programs that JAX compiles.

    In a graph the ops of arguments and results are named after the parameters of `fun_jax` and
    the keys of their pytrees: `params/dense/kernel`, `result/loss`.

    Args:
      fun_jax: a function that `jax.jit` accepts.
      polymorphic_shapes: which dimensions of the positional arguments are symbolic: a pytree
        prefix of the arguments with specifications such as "(b, 28, 28)", "(b, _, _)",
        "(b, ...)" or ("b", 28, 28), and None where the shape is known. The sizes have to determine
        the variables, as those of "(a + 2*b, a)" do. As in JAX, a variable is at least 1.
      polymorphic_constraints: constraints on dimension variables, such as "b >= 4", with ">=",
        "<=" or "==".
      with_gradient: whether TensorFlow can differentiate the result. It then calls `jax.vjp`,
        so custom derivatives are respected. If False, differentiating it raises a LookupError.
      enable_xla: whether ops may be used that only a TensorFlow with XLA can run.
      target: who will run the ops: "xla", "tf", "portable", "tflite", "onnx" or "tfjs". By default
        "xla" if `enable_xla`, else "tf".
      check_shapes: whether a graph has ops that check the sizes that are not known when it is
        made. Without them, sizes that do not fit the specifications give
        wrong results or other errors. Sizes that are known are always checked.

    Returns:
      The converted function. It raises
        TypeError: for an argument that is no array, or has a dtype JAX or TensorFlow lacks;
        ValueError: for `polymorphic_shapes` that are no specifications of the arguments, or do
          not determine the variables;
        ShapeError: for sizes that do not fit; it is a ValueError and an InvalidArgumentError;
        UnsupportedError: for a primitive that the target cannot express;
        TransformationError: if called while JAX is tracing; it is a LoweringError and a
          ValueError;
        LoweringError: for any other failure to lower, and for a gradient that JAX cannot compute.
      A graph raises InvalidArgumentError if sizes do not fit when it runs, or when XLA compiles it.

    Raises:
      TypeError: if `fun_jax` is no JAX function.
      ValueError: for an unknown target.
    """
    functions.check(fun_jax)
    return _conversion(
        fun_jax,
        polymorphic_shapes,
        polymorphic_constraints=polymorphic_constraints,
        with_gradient=with_gradient,
        target=resolve(enable_xla, target),
        check_shapes=check_shapes,
    )


def _conversion(
    fun_jax: Callable[..., Any],
    polymorphic_shapes: Any,
    *,
    polymorphic_constraints: Sequence[str],
    target: Target,
    with_gradient: bool = True,
    check_shapes: bool = False,
    shapes: Sequence[tuple[Any, ...]] | None = None,
    variables_given: Collection[Any] = (),
) -> Callable[..., Any]:
    """What `convert` returns.

    For a derivative of what the caller has, `shapes` are those of its arguments: it is traced on
    the symbolic dimensions that the function was traced on. `variables_given` are references of the
    variables whose values are among them.
    """
    traces = Bounded(_TRACES)
    traced_fun = closures.on_plain_containers(fun_jax)
    # Its sizes follow from those of the function, which have been checked.
    convert_vjp = functools.partial(
        _conversion,
        polymorphic_constraints=polymorphic_constraints,
        target=target,
    )

    @functools.wraps(fun_jax, updated=())
    @constants.within_scope()
    def fun_tf(*args: Any, **kwargs: Any) -> Any:
        if jax_compat.in_transformation():
            raise TransformationError(
                f"the conversion of {callables.name(fun_jax)} was called inside a JAX "
                "transformation (jit, grad, vmap, an export, ...); give the JAX function there"
            )
        plugins.load()
        given = arguments.flatten(
            args, kwargs, polymorphic_shapes, polymorphic_constraints, check_shapes, fun_jax
        )
        if shapes is not None:
            given = given.with_shapes(shapes)
        key = given.key, jax_compat.trace_context(), pipeline.skipped()
        try:
            traced = traces.get(key, lambda: _Trace.of(traced_fun, given, convert_vjp, target))
        except (TypeError, jax.errors.JAXIndexError) as error:
            python_values.advise(error, fun_jax, args, kwargs)
            raise
        names = _Names() if shapes is not None else _Names.of(fun_jax, given, traced)
        with checks.checked(given.sizes, check_shapes) as (variables, is_checked):
            tensors = naming.named(given.tensors, names.of_arguments, always=is_checked)
            plain = functools.partial(_lower, traced, target)
            function = traced.eager_calls.function(plain, variables)
            lower: gradient.Lower = function or functools.partial(plain, variables)
            if with_gradient:
                lower = gradient.differentiable(lower, traced.vjp, variables_given)
            else:
                prevent = functools.partial(
                    gradient.prevent,
                    name=callables.name(fun_jax),
                    op_names=names.of_results,
                    is_natural=target.is_natural,
                )
                lower = functools.partial(lower, prevent=prevent)
            results = naming.named(lower(*tensors), names.of_results)
        return jax.tree_util.tree_unflatten(traced.program.out_tree, results)

    # AutoGraph would rewrite the code of JAX, to no effect but a slow trace.
    fun_tf = tf.autograph.experimental.do_not_convert(fun_tf)
    setattr(fun_tf, "__signature__", arguments.signature(fun_jax))  # noqa: B010
    return fun_tf


@dataclasses.dataclass(frozen=True)
class _Names:
    """The names of the ops of arguments and of results; none where there is no graph to read."""

    of_arguments: Sequence[str] = ()
    of_results: Sequence[str] = ()

    @classmethod
    def of(cls, fun: Callable[..., Any], given: arguments.Arguments, traced: "_Trace") -> "_Names":
        if modes.current() is Mode.EAGER:
            return cls()
        return cls(
            naming.of_arguments(fun, given.paths()), naming.of_results(traced.program.out_tree)
        )


@dataclasses.dataclass(frozen=True)
class _Trace:
    """What is kept for arguments of the same structure, shapes and dtypes.

    Attributes:
      program: the traced function.
      avals: the abstract values of the arguments.
      vjp: its gradient.
      caches: those of the program.
      eager_calls: its eager calls.
    """

    program: Program
    avals: Sequence[jax.ShapeDtypeStruct]
    vjp: gradient.Vjp
    caches: ProgramCaches
    eager_calls: EagerCalls

    @classmethod
    def of(
        cls,
        fun: Callable[..., Any],
        given: arguments.Arguments,
        convert_vjp: Callable[..., Any],
        target: Target,
    ) -> "_Trace":
        """Traces a function."""
        program = trace(fun, given.tree, given.avals, target)
        has_specifications = given.sizes is not None
        vjp = gradient.Vjp(
            fun,
            program.traced,
            given.avals,
            program.traced.out_avals,
            has_specifications,
            convert_vjp,
            jax_compat.settings(),
        )
        caches = ProgramCaches(Folder(program.parameters))
        return cls(program, given.avals, vjp, caches, EagerCalls(program, target))


def _lower(
    traced: _Trace,
    target: Target,
    variables: Mapping[str, tf.Tensor],
    *tensors: tf.Tensor,
    prevent: Prevent | None = None,
) -> list[tf.Tensor]:
    """Lowers a program in the mode that TensorFlow is in; returns its results.

    Args:
      traced: the program.
      target: who runs the ops.
      variables: the values of dimension variables.
      *tensors: the arguments as tensors.
      prevent: makes results that cannot be differentiated of some and of the arguments.
    """
    jaxpr = traced.program.jaxpr
    if not modes.is_eager():
        constants.note_narrow(traced.program.narrow_dtypes)
    interpreter = Interpreter(target, Dimensions(variables), traced.program, traced.caches)
    with jax_compat.our_settings(), lowering_for(target):
        operands = [boundary.enter(x, a.dtype) for x, a in zip(tensors, traced.avals, strict=True)]
        operands = boundary.split(operands, traced.avals)
        with kernels.checked(target):
            results = interpreter.run_to_tensors(jaxpr, *operands)
        # The op of exact targets lacks dtypes that results have only behind the boundary. Natural
        # ones have theirs behind it, as the boundary looks at the ops that make results.
        if prevent is not None and not target.is_natural:
            results = prevent(results, tensors)
        avals = traced.program.traced.out_avals
        results = boundary.joined(results, avals)
        results = [boundary.leave(x, a.dtype) for x, a in zip(results, avals, strict=True)]
        if prevent is not None and target.is_natural:
            results = prevent(results, tensors)
        return results
