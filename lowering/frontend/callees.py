"""TensorFlow functions that a JAX program calls, on flat lists of tensors.

The function of the user is the first kind. Its derivatives are functions of TensorFlow as well, and
so is what `jax.vmap` makes of it, so each of them can be differentiated and mapped again. The
derivative of a mapped function is the mapped derivative: what maps a function in TensorFlow forgets
the custom gradients in it.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, targets
from lowering.frontend import containers, effects
from lowering.ops import dtypes, modes
from lowering.ops.bounded import Bounded

# How many graphs are kept of a function. They are freed with it.
_GRAPHS = 256


class ResultError(ValueError):
    """A function returns something else than it may."""


class ScopeError(TypeError, LookupError):
    """A function has no derivative, as it refers to one that is elsewhere.

    TensorFlow raises a `TypeError` if that is still there, and a `LookupError` if it is not.
    """


class Callee(Protocol):
    """A function of flat tensors that returns flat tensors.

    Attributes:
      root: the function of the user.
      arity: how many operands it has.
    """

    @property
    def root(self) -> "Function": ...

    @property
    def arity(self) -> int: ...

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]: ...


class Origin:
    """What all calls of one function of the user share.

    Attributes:
      fun: the function.
      name: its name.
      graphs: the graphs that were made of it and of its derivatives.
      has_warned: whether the user knows that it runs by a callback.
    """

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        self.name: str = getattr(fun, "__name__", type(fun).__name__)
        self.graphs = Bounded(_GRAPHS)
        self.has_warned = False


@dataclasses.dataclass(frozen=True)
class Declared:
    """What the user says of the results of a function.

    Attributes:
      tree: their structure.
      avals: their shapes and dtypes; dimensions may be symbolic.
    """

    tree: Any
    avals: tuple[jax.core.ShapedArray, ...]


@dataclasses.dataclass(frozen=True)
class Function:
    """The function of the user, on the leaves of its arguments.

    Attributes:
      origin: the function.
      tree: the structure of its arguments, as `(args, kwargs)`.
      settings: the settings of JAX, by name, under which it is called. 64-bit results are taken as
        32-bit ones unless these have it otherwise.
      declared: what the user says of its results; None for nothing.
    """

    origin: Origin
    tree: Any
    settings: tuple[tuple[str, Any], ...]
    declared: Declared | None = None

    def __repr__(self) -> str:
        return self.origin.name

    @property
    def root(self) -> "Function":
        return self

    @property
    def arity(self) -> int:
        return self.tree.num_leaves

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        """The leaves of the results on the leaves of the arguments.

        Raises:
          ResultError: for a result that JAX cannot take, or that is not what was declared.
        """
        args, kwargs = jax.tree_util.tree_unflatten(self.tree, operands)
        with jax_compat.outside_of_tracing(), jax_compat.under(dict(self.settings)):
            returned = self.origin.fun(*args, **kwargs)
            if isinstance(returned, tf.Operation):
                returned = []  # What TensorFlow returns for a function without results in a graph.
            leaves, tree = jax.tree_util.tree_flatten(containers.plain(returned))
            results = [_result(self.origin.name, i, x) for i, x in enumerate(leaves)]
        function, structures = _OBSERVED.get()
        if function == self:
            structures.append(tree)
        return results if self.declared is None else self._checked(self.declared, results, tree)

    def _checked(self, declared: Declared, results: list[tf.Tensor], tree: Any) -> list[tf.Tensor]:
        """Results, if they are those that were declared."""
        if tree != declared.tree:
            raise ResultError(
                f"the results of {self.origin.name} have the structure {tree}, but "
                f"output_shape_dtype has {declared.tree}"
            )
        checked = []
        for i, (y, aval) in enumerate(zip(results, declared.avals, strict=True)):
            static = tf.TensorShape(avals.static_shape(aval.shape))
            has_dtype = y.dtype == dtypes.to_tf_argument(aval.dtype)
            if not (has_dtype and static.is_compatible_with(y.shape)):
                raise ResultError(
                    f"result {i} of {self.origin.name} is {y.dtype.name}{y.shape}, but "
                    f"output_shape_dtype says {aval.dtype.name}{static}"
                )
            checked.append(_of_shape(y, static))
        return checked


# The function whose results are observed, and the structures of what it has returned.
_OBSERVED: contextvars.ContextVar[tuple[Function | None, list[Any]]] = contextvars.ContextVar(
    "observed", default=(None, [])
)


@contextlib.contextmanager
def observed(function: Function) -> Iterator[list[Any]]:
    """A context that gives the structures of what a function returns while it lasts."""
    structures: list[Any] = []
    token = _OBSERVED.set((function, structures))
    try:
        yield structures
    finally:
        _OBSERVED.reset(token)


@dataclasses.dataclass(frozen=True)
class _Derivative:
    """A derivative of a function by some operands.

    Attributes:
      of: the function that is differentiated.
      active: the positions of the operands.
      results: the positions of the results that are differentiated.
    """

    of: Callee
    active: tuple[int, ...]
    results: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({self.of})"

    @property
    def root(self) -> Function:
        return self.of.root


@dataclasses.dataclass(frozen=True, repr=False)
class Tangent(_Derivative):
    """The tangents of results, given all operands and the tangents of some.

    `active` are the operands whose tangents are given, `results` those whose tangents are returned.
    """

    @property
    def arity(self) -> int:
        return self.of.arity + len(self.active)

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        given, tangents = operands[: self.of.arity], list(operands[self.of.arity :])
        try:
            return self._by_linearity(given, tangents)
        except LookupError:
            # The derivative has itself no derivative, as in a loaded SavedModel.
            if any(t.dtype.is_complex for t in tangents):
                raise
            return self._row_by_row(given, tangents)

    def _by_linearity(
        self, operands: Sequence[tf.Tensor], tangents: list[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Cotangents are pulled back by a linear function; its derivative is the other way round.

        What cotangents are pulled back is of no matter then.
        """
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            cotangents: list[tf.Tensor] = []

            def any_cotangents(results):
                cotangents.extend(map(tf.zeros_like, results))
                tape.watch(cotangents)
                return cotangents

            pulled_back = _pulled_back(self.of, operands, self.active, self.results, any_cotangents)
        with _explained(self.of):
            return _gradients(tape, pulled_back, cotangents, tangents)

    def _row_by_row(
        self, operands: Sequence[tf.Tensor], tangents: list[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Each element of a result has a gradient; with the tangents it gives its tangent."""
        operands, sources = _with_sources(operands, self.active)
        with _explained(self.of), tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            returned = self.of(*operands)
        pushed = []
        for i in self.results:
            with _explained(self.of):
                rows = tape.jacobian(returned[i], sources, tf.UnconnectedGradients.ZERO)
            pairs = zip(rows, tangents, strict=True)
            pushed.append(tf.add_n([tf.tensordot(row, t, t.shape.rank) for row, t in pairs]))
        return pushed


@dataclasses.dataclass(frozen=True, repr=False)
class Cotangent(_Derivative):
    """The cotangents of some operands, given all operands and the cotangents of results.

    `active` are the operands whose cotangents are returned, `results` those whose are given.
    """

    @property
    def arity(self) -> int:
        return self.of.arity + len(self.results)

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        given, cotangents = operands[: self.of.arity], operands[self.of.arity :]
        # TensorFlow's gradient of a complex value is the conjugate of JAX's.
        conjugates = list(map(_conjugate, cotangents))
        pulled_back = _pulled_back(
            self.of, given, self.active, self.results, lambda results: conjugates
        )
        return list(map(_conjugate, pulled_back))


@dataclasses.dataclass(frozen=True)
class Mapped:
    """A function mapped over the first dimension of some operands.

    Attributes:
      of: the function of one element.
      batched: which operands have the dimension.
      summed: the positions of the results that are summed over it; the others have it.
    """

    of: Callee
    batched: tuple[bool, ...]
    summed: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"mapped({self.of})"

    @property
    def root(self) -> Function:
        return self.of.root

    @property
    def arity(self) -> int:
        return self.of.arity

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        elements = [x for x, batched in zip(operands, self.batched, strict=True) if batched]

        @tf.autograph.experimental.do_not_convert
        def one(elements):
            rest = iter(elements)
            pairs = zip(operands, self.batched, strict=True)
            return self.of(*(next(rest) if batched else x for x, batched in pairs))

        in_turn = self._goes_in_turn(operands)
        results = _mapped_in_turn(one, elements) if in_turn else _mapped(one, elements)
        return [tf.reduce_sum(y, 0) if i in self.summed else y for i, y in enumerate(results)]

    def _goes_in_turn(self, operands: Sequence[tf.Tensor]) -> bool:
        """Whether TensorFlow cannot map a function at once: what it does is to be done in turn."""
        callee: Any = self
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in operands]
        while callee is not self.root:
            if isinstance(callee, Mapped):
                pairs = zip(specs, callee.batched, strict=True)
                specs = [tf.TensorSpec(s.shape[1:], s.dtype) if b else s for s, b in pairs]
            callee = callee.of
            specs = specs[: callee.arity]
        key = callee, tuple(specs), "goes in turn"
        return self.root.origin.graphs.get(key, lambda: _acts(callee, specs))


def _acts(function: Function, specs: Sequence[tf.TensorSpec]) -> bool:
    """Whether a function does something that is to be done for one element after the other.

    A graph of its own tells: in the one that is made now, what is tried would stay.
    """
    try:
        with modes.eagerly():
            traced = tf.function(lambda *x: function(*x), autograph=False)
            graph = traced.get_concrete_function(*specs).graph
    except Exception:  # What cannot be traced may still run op by op.
        return tf.executing_eagerly()
    return bool(effects.acting_in_turn(effects.stateful_ops(graph)))


def tangent(of: Callee, active: tuple[int, ...], results: tuple[int, ...]) -> Callee:
    """The function that pushes tangents of operands forward to those of results."""
    if not isinstance(of, Mapped):
        return Tangent(of, active, results)
    batched = (*of.batched, *(of.batched[i] for i in active))
    summed = frozenset(k for k, i in enumerate(results) if i in of.summed)
    return Mapped(tangent(of.of, active, results), batched, summed)


def cotangent(of: Callee, active: tuple[int, ...], results: tuple[int, ...]) -> Callee:
    """The function that pulls cotangents of results back to those of operands."""
    if not isinstance(of, Mapped):
        return Cotangent(of, active, results)
    batched = (*of.batched, *(i not in of.summed for i in results))
    # All elements contribute to the cotangent of an operand that they share.
    summed = frozenset(k for k, i in enumerate(active) if not of.batched[i])
    return Mapped(cotangent(of.of, active, results), batched, summed)


def has_two_ways(callee: Callee) -> bool:
    """Whether a function may run op by op where it has no graph, as a first derivative may."""
    while isinstance(callee, Mapped):
        callee = callee.of
    return isinstance(callee, Tangent) and isinstance(callee.of, Function)


def is_inexact(dtype: Any) -> bool:
    """Whether values of a dtype have derivatives."""
    return jnp.issubdtype(dtype, np.inexact)


def _pulled_back(
    of: Callee,
    operands: Sequence[tf.Tensor],
    active: Sequence[int],
    results: Sequence[int],
    cotangents: Callable[[list[tf.Tensor]], list[tf.Tensor]],
) -> list[tf.Tensor]:
    """TensorFlow's gradients of some results by some operands, given `cotangents(results)`."""
    operands, sources = _with_sources(operands, active)
    with _explained(of):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            returned = of(*operands)
            differentiated = [returned[i] for i in results]
        return _gradients(tape, differentiated, sources, cotangents(differentiated))


def _with_sources(
    operands: Sequence[tf.Tensor], active: Sequence[int]
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """All operands, and those that a tape is to watch.

    The latter are tensors of their own, since a tensor may be several operands, whose derivatives a
    tape would add up.
    """
    given = [tf.identity(x) if i in active else x for i, x in enumerate(operands)]
    return given, [given[i] for i in active]


@contextlib.contextmanager
def _explained(of: Callee) -> Iterator[None]:
    """A context in which an error that says that there is no derivative also says what to do."""
    name = of.root.origin.name
    try:
        yield
    except (LookupError, TypeError) as error:
        if is_out_of_scope(error):
            raise out_of_scope(of) from error
        if type(error) is not LookupError or _EXPLAINED in str(error):
            raise
        raise LookupError(
            f"{_EXPLAINED} {name}: {error}. Give it one with tf.custom_gradient, or put "
            "jax.lax.stop_gradient around its arguments"
        ) from error


def is_out_of_scope(error: Exception) -> bool:
    """Whether TensorFlow says that a function refers to what is elsewhere."""
    # The op that a custom gradient is registered for.
    return any(text in str(error) for text in ("out of scope", "op type: IdentityN"))


def out_of_scope(callee: Callee) -> ScopeError:
    """The error for a function that refers to what is elsewhere."""
    return ScopeError(
        f"{_EXPLAINED} {callee.root.origin.name} that it could use here. A loaded model has first "
        "derivatives alone, and custom ones only if it was saved with "
        "tf.saved_model.SaveOptions(experimental_custom_gradients=True)"
    )


_EXPLAINED = "TensorFlow has no derivative of"


def _gradients(
    tape: tf.GradientTape,
    targets: list[tf.Tensor],
    sources: list[tf.Tensor],
    cotangents: list[tf.Tensor],
) -> list[tf.Tensor]:
    gradients = tape.gradient(targets, sources, cotangents, tf.UnconnectedGradients.ZERO)
    return list(map(tf.convert_to_tensor, gradients))  # Some are slices.


def _mapped(one: Callable[..., list[tf.Tensor]], elements: list[tf.Tensor]) -> list[tf.Tensor]:
    """The results of a function for all elements, at once if TensorFlow can, else in turn."""
    try:
        return list(tf.vectorized_map(one, elements))
    except Exception:  # TensorFlow raises all kinds of errors for what it cannot vectorize.
        return _mapped_in_turn(one, elements)


def _mapped_in_turn(
    one: Callable[..., list[tf.Tensor]], elements: list[tf.Tensor]
) -> list[tf.Tensor]:
    size = elements[0].shape[0]
    if tf.executing_eagerly() and size:
        results = [one([x[i] for x in elements]) for i in range(size)]
        return [tf.stack(of_all) for of_all in zip(*results, strict=True)]
    specs = [tf.TensorSpec(x.shape[1:], x.dtype) for x in elements]
    graph = tf.function(one, autograph=False).get_concrete_function(specs)
    signature = [tf.TensorSpec(y.shape, y.dtype) for y in graph.outputs]
    return list(tf.map_fn(one, elements, 1, fn_output_signature=signature))


def _result(name: str, position: int, leaf: Any) -> tf.Tensor:
    """A leaf of what a function has returned, as a tensor of a dtype that JAX has."""
    try:
        tensor = tf.convert_to_tensor(leaf)
        dtype = jax.dtypes.canonicalize_dtype(_numpy_dtype(tensor.dtype))
    except (TypeError, ValueError) as error:
        kind = getattr(getattr(leaf, "dtype", None), "name", type(leaf).__name__)
        raise ResultError(
            f"result {position} of {name} has type {kind}, which is no JAX array; return numbers "
            "or booleans"
        ) from error
    return tf.cast(tensor, dtypes.to_tf_argument(dtype)) if dtype != tensor.dtype else tensor


def _of_shape(y: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """A tensor that is to have a shape, of which not all sizes need be known.

    A graph checks when it runs what is not known before, unless it is for a consumer, which has no
    op for that.
    """
    if y.shape.rank is not None and all(
        size is None or size == known for size, known in zip(shape, y.shape, strict=True)
    ):
        return y
    if targets.current().has_tensorflow_kernels:
        return tf.ensure_shape(y, shape)
    y.set_shape(shape)
    return y


def _numpy_dtype(dtype: tf.DType) -> np.dtype:
    """The NumPy dtype of a tensor of numbers or booleans."""
    if dtype.is_quantized or dtype in (tf.string, tf.resource, tf.variant):
        raise TypeError(f"{dtype.name} is no dtype of JAX")
    return np.dtype(dtype.as_numpy_dtype)


def _conjugate(x: tf.Tensor) -> tf.Tensor:
    return tf.math.conj(x) if x.dtype.is_complex else x
