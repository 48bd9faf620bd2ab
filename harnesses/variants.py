"""Variants of harnesses: the same case mapped, differentiated, of symbolic size, or under settings.

A variant of a harness is a program that JAX makes of it, or its program as it is under settings of
JAX that users have. JAX may be unable to make it: to map, differentiate or trace it.
"""

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from operator import add, mul
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import lowering
from harnesses import compare
from harnesses.arguments import INEXACT
from harnesses.harness import Harness
from lowering import jax_compat

# The harness as it is.
PLAIN = "plain"
# A harness whose arrays have more axes than a runtime may take.
MORE_AXES = "more axes"

# The mode of what converters and runtimes of consumers make of a program.
RUNTIME = "runtime"

# The sizes of batches and of symbolic dimensions; the first is that for which a program is lowered
# where its shapes are static.
SIZES = (3, 1, 2)

# The sizes of axes over which a harness is mapped: so many that few ops of TensorFlow take as many,
# and as many as make most arrays such that a runtime may not take them.
MANY_AXES = (2, 1, 1, 2, 1, 1, 1, 1)
MORE_AXES_OF_RUNTIMES = (2, 1, 2, 1)


def _convert_without_gradient(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lowering.convert(fun, with_gradient=False, **options)


@dataclasses.dataclass(frozen=True)
class Trial:
    """A program, and how it is run and compared.

    Attributes:
      fun: the JAX function that is lowered.
      runs: the arguments of each run; they differ only in sizes.
      comparer: how the results of a run are compared.
      reference: the JAX function that gives the expected results; `fun` by default.
      shapes: the `polymorphic_shapes` of `fun`.
      settings: settings of JAX, by name.
      convert: `(fun, **options)` that makes the TensorFlow function.
      whatever_shapes: how results are compared that are not those of a batch, if these are; None
        if they are compared by `comparer`.
    """

    fun: Callable[..., Any]
    runs: Sequence[Sequence[Any]]
    comparer: compare.Comparer
    reference: Callable[..., Any] | None = None
    shapes: Sequence[str | None] | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    convert: Callable[..., Callable[..., Any]] = _convert_without_gradient
    whatever_shapes: compare.Comparer | None = None

    def lowered(self, target: str) -> Callable[..., Any]:
        """The TensorFlow function for a target."""
        return self.convert(self.fun, target=target, polymorphic_shapes=self.shapes)

    def trace(self) -> None:
        """Raises an error if JAX cannot trace the program with its symbolic shapes."""
        if self.shapes is not None:
            scope = jax.export.SymbolicScope()
            fun, arrays = on_arrays(self.fun, self.runs[0])
            specs = [
                spec for spec, arg in zip(self.shapes, self.runs[0], strict=True) if is_array(arg)
            ]
            jax.jit(fun).trace(
                *(_struct(x, spec, scope) for x, spec in zip(arrays, specs, strict=True))
            )


class NoVariantError(Exception):
    """A harness has no such variant."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """A kind of variant.

    Attributes:
      trial: makes the program of a harness; raises a `NoVariantError`, or any error of JAX.
      modes: the modes in which it is run; that of runtimes for what their converters are given.
      applies: whether a harness may have it, as far as its arguments tell.
      is_as_plain: whether the limitations of the harness as it is hold for it, too.
    """

    trial: Callable[[Harness], Trial]
    modes: Sequence[str]
    applies: Callable[[Harness], bool]
    is_as_plain: bool = False


def is_array(x: Any) -> bool:
    """Whether an argument is an array that TensorFlow can be given."""
    return isinstance(x, np.ndarray | np.generic)


def on_arrays(
    fun: Callable[..., Any], args: Sequence[Any]
) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function of the arrays among its arguments alone, and these."""
    others = {i: arg for i, arg in enumerate(args) if not is_array(arg)}
    return lambda *arrays: fun(*_merge(others, arrays)), [x for x in args if is_array(x)]


def _merge(others: Mapping[int, Any], arrays: Sequence[Any]) -> list[Any]:
    """All arguments: `others` by position, and between them the arrays."""
    rest = iter(arrays)
    return [others[i] if i in others else next(rest) for i in range(len(others) + len(arrays))]


def _struct(x: np.ndarray, spec: str | None, scope: Any) -> jax.ShapeDtypeStruct:
    shape = x.shape if spec is None else jax.export.symbolic_shape(spec, like=x.shape, scope=scope)
    return jax.ShapeDtypeStruct(shape, x.dtype)


def _plain(harness: Harness) -> Trial:
    return Trial(harness.fun, [harness.make_args()], harness.comparer)


def _under(harness: Harness, settings: Mapping[str, Any]) -> Trial:
    """A harness under settings of JAX, where 64-bit types may become narrower ones.

    Harnesses whose numbers become narrower have arguments that were chosen for wider ones, so that
    what is computed of them may be off by more than the harness states.
    TensorFlow, which converts tensors of arguments, makes zeros of what is subnormal in float32.
    Without `jit`, JAX leaves conversions of NumPy's arrays to NumPy, whose results differ. So the
    reference gets arrays of JAX.
    """
    narrower = compare.close_to_largest(ulps=64)

    def compare_narrower(expected, actual, args):
        comparison = harness.comparer(expected, actual, args)
        return comparison if comparison.equal else narrower(expected, actual, args)

    def of_arrays_of_jax(*args):
        return harness.fun(*(jnp.asarray(x) if is_array(x) else x for x in args))

    args = harness.make_args()
    reference = of_arrays_of_jax if settings.get("jax_disable_jit") else None
    if settings.get("jax_enable_x64", True) or not _has_doubles(harness, args):
        return Trial(harness.fun, [args], harness.comparer, reference=reference, settings=settings)
    normal = list(map(_without_float32_subnormals, args))
    return Trial(harness.fun, [normal], compare_narrower, settings=settings)


def _has_doubles(harness: Harness, args: Sequence[Any]) -> bool:
    """Whether arguments or results are of float64, or complex numbers of such parts."""
    results = jax.tree.leaves(jax.eval_shape(harness.fun, *args))
    return any(getattr(x, "dtype", None) in _DOUBLES for x in (*args, *results))


_DOUBLES = (np.float64, np.complex128)


def _without_float32_subnormals(x: Any) -> Any:
    """An argument whose float64 numbers are zero where they are subnormal in float32.

    The zeros have no sign, which natural targets may lose.
    """
    if not is_array(x) or x.dtype not in _DOUBLES:
        return x
    parts = np.ascontiguousarray(x).view(np.float64)
    is_zero = (np.abs(parts) < np.finfo(np.float32).tiny) & (parts != 0)
    flushed = np.where(is_zero, 0.0, parts)
    return flushed.view(x.dtype).reshape(x.shape)


def arrays_of(results: Any) -> list[np.ndarray]:
    """The leaves of JAX's results as arrays."""
    return list(map(array_of, jax.tree.leaves(results)))


def array_of(x: Any) -> np.ndarray:
    """A value of JAX as `convert` gives it: keys as their data, float0 as False."""
    if not hasattr(x, "dtype"):
        return np.asarray(x)
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(x))
    if x.dtype == jax.dtypes.float0:
        return np.zeros(x.shape, np.bool_)
    return np.asarray(x)


def _batch(
    harness: Harness, size: int = SIZES[0]
) -> tuple[Callable[..., Any], list[np.ndarray], compare.Comparer]:
    """A harness mapped over a batch of its arrays: function, arguments, comparer.

    What JAX computes for an element alone is as right as what it computes for it in a batch: which
    of two zeros is the minimum of a window depends on how XLA vectorizes an array of that shape.
    """
    fun, _ = on_arrays(harness.fun, harness.make_args())
    alone = jax.jit(fun)
    samples = [on_arrays(harness.fun, harness.make_args(i))[1] for i in range(size)]

    def compare_elements(expected, actual, args):
        comparisons = []
        for i in range(len(args[0])):
            e, a, x = ([x[i] for x in values] for values in (expected, actual, args))
            comparison = harness.comparer(e, a, x)
            if not comparison.equal:
                comparison = harness.comparer(arrays_of(alone(*x)), a, x)
            comparisons.append(comparison)
        return min(comparisons, key=lambda c: (c.equal, -c.error))

    return jax.vmap(fun), list(map(np.stack, zip(*samples, strict=True))), compare_elements


def _vmap(harness: Harness) -> Trial:
    fun, args, comparer = _batch(harness)
    return Trial(fun, [args], comparer, whatever_shapes=harness.comparer)


def _more_axes(harness: Harness, axes: Sequence[int]) -> Trial:
    """A harness mapped over axes of some sizes."""
    size, count = math.prod(axes), len(axes)
    fun, args, comparer = _batch(harness, size)
    mapped = functools.reduce(lambda f, _: jax.vmap(f), range(count - 1), fun)

    def compare_elements(*values):
        return comparer(*([x.reshape(size, *x.shape[count:]) for x in v] for v in values))

    args = [x.reshape(*axes, *x.shape[1:]) for x in args]
    return Trial(mapped, [args], compare_elements, whatever_shapes=harness.comparer)


def _more_axes_of_runtimes(harness: Harness) -> Trial:
    """A harness mapped over so many axes that a runtime may not take its arrays."""
    settings: Mapping[str, Any] = {} if harness.is_of_64_bits else SETTINGS["32 bits"]
    if settings and _has_doubles(harness, harness.make_args()):
        raise NoVariantError("without 64 bits, its numbers are others")
    trial = _more_axes(harness, MORE_AXES_OF_RUNTIMES)
    to_largest = compare.close_to_largest(ulps=64)

    def compare_places(expected, actual, args):
        """Whether each number is at its place, even where a runtime has other digits for it."""
        comparison = trial.comparer(expected, actual, args)
        return comparison if comparison.equal else to_largest(expected, actual, args)

    return dataclasses.replace(trial, settings=settings, comparer=compare_places)


def _symbolic_batch(harness: Harness) -> Trial:
    fun, args, comparer = _batch(harness)
    runs = [[arg[:size] for arg in args] for size in SIZES]
    shapes = ["b, ..."] * len(args)
    return Trial(fun, runs, comparer, shapes=shapes, whatever_shapes=harness.comparer)


def _symbolic_axes(harness: Harness) -> Trial:
    args = harness.make_args()
    shapes = harness.shapes(args)

    def resized(size):
        return [
            arg if spec is None else _resized(arg, spec, size)
            for arg, spec in zip(args, shapes, strict=True)
        ]

    return Trial(harness.fun, list(map(resized, SIZES)), harness.comparer, shapes=shapes)


def _resized(x: np.ndarray, spec: str, size: int) -> np.ndarray:
    """An array whose dimension variables have a size; its elements are repeated as needed."""
    for axis, dim in enumerate(jax.export.symbolic_shape(spec, like=x.shape)):
        variables = {name: size for name in jax_compat.dim_variables(dim)}
        if variables:
            length = jax_compat.evaluate_dim(dim, variables, {"add": add, "mul": mul})
            x = np.take(x, np.arange(length) % x.shape[axis], axis)
    return x


@dataclasses.dataclass(frozen=True)
class _Active:
    """What can be differentiated in a harness.

    Attributes:
      args: the arguments.
      inputs: the positions of those by which it can be differentiated.
      fun: the function from these to the results that have a derivative.
      comparer: how derivatives are compared.
    """

    args: Sequence[Any]
    inputs: Sequence[int]
    fun: Callable[..., Any]
    comparer: compare.Comparer

    @classmethod
    def of(cls, harness: Harness) -> "_Active":
        args = harness.make_args()
        fun_of_arrays, arrays = on_arrays(harness.fun, args)
        results = jax.tree.leaves(jax.eval_shape(fun_of_arrays, *arrays))
        outputs = [i for i, x in enumerate(results) if _is_inexact(x)]
        comparer = harness.derivatives
        if not outputs or comparer is None:
            raise NoVariantError("no result has a derivative")

        def of(inputs):
            others = {i: arg for i, arg in enumerate(args) if i not in inputs}

            def fun(*active):
                leaves = jax.tree.leaves(harness.fun(*_merge(others, active)))
                return [leaves[i] for i in outputs]

            active = cls(args, inputs, fun, comparer)
            jax.eval_shape(_tangents_of(fun, len(inputs)), *active.primals * 2)
            return active

        inputs = [i for i, arg in enumerate(args) if _is_inexact(arg)]
        try:
            return of(inputs)
        except (ValueError, NotImplementedError):
            # JAX has the derivatives of some primitives by their last operand alone.
            if len(inputs) == 1:
                raise
            return of(inputs[-1:])

    @property
    def primals(self) -> list[Any]:
        return [self.args[i] for i in self.inputs]

    def cotangents(self, harness: Harness) -> list[np.ndarray]:
        return _directions(harness, jax.eval_shape(self.fun, *self.primals))


def _is_inexact(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype in map(np.dtype, INEXACT)


def _directions(harness: Harness, like: Sequence[Any]) -> list[np.ndarray]:
    """Arrays of the shapes and dtypes of others.

    They are not the numbers of the arguments, along which many derivatives are zero.
    """
    rng = np.random.default_rng(zlib.crc32(f"direction {harness.name}".encode()))
    # Formats of a few bits round each sum of other numbers than these, in the compiler's order.
    has_few_bits = harness.dtype_name.startswith(("float4", "float6", "float8"))

    def direction(x):
        values = rng.choice([-1.0, 1.0], x.shape) if has_few_bits else rng.uniform(-1, 1, x.shape)
        if np.dtype(x.dtype).kind == "c":
            values = values + 1j * rng.uniform(-1, 1, x.shape)
        return np.asarray(values).astype(x.dtype)

    return [direction(x) for x in like]


def _jvp(harness: Harness) -> Trial:
    active = _Active.of(harness)
    count = len(active.inputs)
    fun = _tangents_of(active.fun, count)
    return Trial(fun, [[*active.primals, *_directions(harness, active.primals)]], active.comparer)


def _tangents_of(fun, count):
    return lambda *args: jax.jvp(fun, args[:count], args[count:])[1]


def _vjp(harness: Harness) -> Trial:
    active = _Active.of(harness)
    fun = _pullback_of(active.fun, len(active.inputs))
    return Trial(fun, [[*active.primals, *active.cotangents(harness)]], active.comparer)


def _pullback_of(fun, count):
    return lambda *args: jax.vjp(fun, *args[:count])[1](list(args[count:]))


def _gradient(harness: Harness) -> Trial:
    """TensorFlow's gradient of the conversion; of complex values it is the conjugate of JAX's."""
    active = _Active.of(harness)
    count = len(active.inputs)
    pull_back = _pullback_of(active.fun, count)

    def reference(*args):
        conjugated = map(jnp.conj, args[count:])
        return [jnp.conj(x) for x in pull_back(*args[:count], *conjugated)]

    def convert(fun, **options):
        converted = lowering.convert(fun, **options)

        def gradients(*args):
            primals, cotangents = list(args[:count]), list(args[count:])
            with tf.GradientTape() as tape:
                tape.watch(primals)
                results = converted(*primals)
            return tape.gradient(results, primals, cotangents, unconnected_gradients="zero")

        return gradients

    args = [*active.primals, *active.cotangents(harness)]
    return Trial(active.fun, [args], active.comparer, reference=reference, convert=convert)


def _third_call(harness: Harness) -> Trial:
    """A harness that is called so often that TensorFlow runs it as a function."""

    def convert(fun, **options):
        converted = _convert_without_gradient(fun, **options)
        return lambda *args: [converted(*args) for _ in range(3)][-1]

    return dataclasses.replace(_plain(harness), convert=convert)


# Settings of JAX under which users run their programs, by the name of the variant.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "rank promotion raises": {"jax_numpy_rank_promotion": "raise"},
    "dtype promotion is strict": {"jax_numpy_dtype_promotion": "strict"},
    "JAX checks": {"jax_enable_checks": True},
    "NaN raises": {"jax_debug_nans": True},
    "highest matmul precision": {"jax_default_matmul_precision": "highest"},
    "rbg keys": {"jax_default_prng_impl": "rbg"},
    "sequential threefry": {"jax_threefry_partitionable": False},
    "32 bits": {"jax_enable_x64": False},
    "without jit": {"jax_disable_jit": True},
}


def _has_arrays(harness: Harness) -> bool:
    return any(map(is_array, harness.make_args()))


def _has_fewer_axes(harness: Harness) -> bool:
    """Whether the arrays of a harness have at most eight axes when they get more.

    Numbers of a function's whole domain say more of its digits than of its axes, and functions of
    TensorFlow are mapped by ops that are not ours.
    """
    if "domain" in harness.case or harness.primitive == "call_tf":
        return False
    ranks = [x.ndim for x in harness.make_args() if is_array(x)]
    return bool(ranks) and max(ranks) + len(MORE_AXES_OF_RUNTIMES) <= 8


def _has_derivatives(harness: Harness) -> bool:
    return harness.derivatives is not None and any(map(_is_inexact, harness.make_args()))


def _keeps(setting: str, harness: Harness) -> bool:
    """Whether JAX computes what a harness says under a setting.

    Without 64-bit types, the results of E8M0 are float32, and XLA leaves the rounding to E8M0 out;
    float64 numbers become equal infinities, of which `approx_top_k` takes any.
    """
    if setting != "32 bits":
        return True
    takes_any = (harness.primitive, harness.dtype_name) == ("approx_top_k", "float64")
    return harness.dtype_name != "float8_e8m0fnu" and not takes_any


VARIANTS: Mapping[str, Variant] = {
    PLAIN: Variant(_plain, ("eager", "graph", "compiled"), lambda harness: True),
    "third call": Variant(_third_call, ("eager",), _has_arrays, is_as_plain=True),
    "vmap": Variant(_vmap, ("graph",), _has_arrays),
    "many axes": Variant(functools.partial(_more_axes, axes=MANY_AXES), ("graph",), _has_arrays),
    MORE_AXES: Variant(_more_axes_of_runtimes, (RUNTIME,), _has_fewer_axes),
    "symbolic batch": Variant(_symbolic_batch, ("graph", "compiled"), _has_arrays),
    "symbolic axes": Variant(
        _symbolic_axes, ("graph", "compiled"), lambda h: any(h.shapes(h.make_args()))
    ),
    "jvp": Variant(_jvp, ("graph",), _has_derivatives),
    "vjp": Variant(_vjp, ("graph",), _has_derivatives),
    "gradient": Variant(_gradient, ("graph",), _has_derivatives),
    **{
        name: Variant(
            functools.partial(_under, settings=settings),
            ("graph",),
            functools.partial(_keeps, name),
        )
        for name, settings in SETTINGS.items()
    },
}
