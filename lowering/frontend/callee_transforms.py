"""Derivatives of TensorFlow functions that a JAX program calls, and mapped functions.

The derivative of a mapped function is the mapped derivative, because `tf.vectorized_map` forgets
custom gradients.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering.frontend import effects
from lowering.frontend.callees import Callee, Function
from lowering.ops import modes
from lowering.ops.registration import recording


class ScopeError(TypeError, LookupError):
    """A function has no derivative here, as its gradient belongs to another graph or process.

    TensorFlow raises a `TypeError` for tensors of another graph, and a `LookupError` for a custom
    gradient that this process has not registered.
    """


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

    `active` are the operands whose tangents are given, `results` the results whose tangents are
    returned.
    """

    @property
    def arity(self) -> int:
        return self.of.arity + len(self.active)

    @recording()
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
        """Differentiates the pullback, which is linear: its transpose pushes tangents forward.

        The values of the cotangents that are pulled back do not matter, so they are zeros.
        """
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            cotangents: list[tf.Tensor] = []

            def any_cotangents(results):
                cotangents.extend(map(tf.zeros_like, results))
                tape.watch(cotangents)
                return cotangents

            pulled_back = _pulled_back(self.of, operands, self.active, self.results, any_cotangents)
        with _explained(self.of):
            return gradients(tape, pulled_back, cotangents, tangents)

    def _row_by_row(
        self, operands: Sequence[tf.Tensor], tangents: list[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Computes the Jacobian of each result, and its product with the tangents."""
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

    `active` are the operands whose cotangents are returned, `results` the results whose cotangents
    are given.
    """

    @property
    def arity(self) -> int:
        return self.of.arity + len(self.results)

    @recording()
    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        given, cotangents = operands[: self.of.arity], operands[self.of.arity :]
        # TensorFlow's gradient of a complex value is the conjugate of JAX's.
        conjugates = list(map(conjugate, cotangents))
        pulled_back = _pulled_back(
            self.of, given, self.active, self.results, lambda results: conjugates
        )
        return list(map(conjugate, pulled_back))


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
        """Whether a function has to run element by element."""
        callee: Any = self
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in operands]
        while callee is not self.root:
            if isinstance(callee, Mapped):
                pairs = zip(specs, callee.batched, strict=True)
                specs = [tf.TensorSpec(s.shape[1:], s.dtype) if b else s for s, b in pairs]
            callee = callee.of
            specs = specs[: callee.arity]
        key = callee, tuple(specs), "goes in turn"
        return self.root.origin.graphs.get(key, lambda: _has_to_go_in_turn(callee, specs))


def _has_to_go_in_turn(function: Function, specs: Sequence[tf.TensorSpec]) -> bool:
    """Whether a function has side effects, or sizes, that each element has for itself.

    It is traced into a graph of its own, so that the graph that is being made gets no ops of the
    trial.
    """
    try:
        with modes.eagerly():
            traced = tf.function(lambda *x: function(*x), autograph=False)
            graph = traced.get_concrete_function(*specs).graph
    except Exception:  # What cannot be traced may still run op by op.
        return tf.executing_eagerly()
    return effects.makes_any_size(graph) or bool(
        effects.acting_in_turn(effects.stateful_ops(graph))
    )


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
        return gradients(tape, differentiated, sources, cotangents(differentiated))


def _with_sources(
    operands: Sequence[tf.Tensor], active: Sequence[int]
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """All operands, and those that a tape is to watch.

    The latter are copies, since one tensor may be several operands, and a tape would add up their
    derivatives.
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
    """Whether TensorFlow says that a gradient belongs to another graph or process."""
    # The op that a custom gradient is registered for.
    return any(text in str(error) for text in ("out of scope", "op type: IdentityN"))


def out_of_scope(callee: Callee) -> ScopeError:
    """The error for a function whose gradient belongs to another graph or process."""
    return ScopeError(
        f"{_EXPLAINED} {callee.root.origin.name} that it could use here. A loaded model has first "
        "derivatives alone, and custom ones only if it was saved with "
        "tf.saved_model.SaveOptions(experimental_custom_gradients=True)"
    )


_EXPLAINED = "TensorFlow has no derivative of"


def gradients(
    tape: tf.GradientTape,
    targets: list[tf.Tensor],
    sources: list[Any],
    cotangents: list[tf.Tensor],
) -> list[tf.Tensor]:
    """The gradients by tensors or variables; zeros by those that targets do not depend on."""
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


def conjugate(x: tf.Tensor) -> tf.Tensor:
    """The conjugate of a complex tensor; any other tensor itself."""
    return tf.math.conj(x) if x.dtype.is_complex else x
