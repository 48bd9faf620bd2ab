"""Estimates the error that quantization causes, which verification has to accept.

A quantized number is off by at most half a step. An array has as many steps between its least and
its largest number as the dtype has values. So the function is run with weights, or all numbers,
that are off by random parts of half a step; its results show how far off a quantized model may be.
"""

import dataclasses
import difflib
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering.export.entry import Entry
from lowering.export.weight_quantization import Weights
from lowering.passes.inlining import inline_calls

# How often numbers are drawn, and how many standard deviations of the results are accepted: of a
# million elements that are distributed normally, one exceeds that in a thousand models.
_DRAWS = 16
DEVIATIONS = 6

# The half step of an array, of its elements and of its least and largest element.
HalfStep = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def of_range(steps: int) -> HalfStep:
    """Steps of asymmetric integers: equal steps over a range; zero is one of the numbers."""
    return lambda x, low, high: (jnp.maximum(high, 0) - jnp.minimum(low, 0)) / (2 * steps)


def _symmetric(steps: int) -> HalfStep:
    """Steps of symmetric integers: equal steps, as many on each side of zero."""
    return lambda x, low, high: jnp.maximum(jnp.abs(low), jnp.abs(high)) / (2 * steps)


def _of_channels(steps: int) -> HalfStep:
    """Steps of each channel of a matrix, which may be its rows or its columns.

    Blocks of a channel have smaller ones. Vectors, such as biases, stay what they are.
    """

    def half_step(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
        if x.ndim < 2:
            return jnp.zeros_like(x)
        if x.ndim > 2:
            return _symmetric(steps)(x, low, high)
        largest = [jnp.max(jnp.abs(x), axis=axis, keepdims=True) for axis in (0, 1)]
        return jnp.maximum(*largest) / (2 * steps)

    return half_step


def _of_float16(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    info = jnp.finfo(jnp.float16)
    return jnp.maximum(jnp.abs(x), info.smallest_normal) * (info.eps / 2)


@dataclasses.dataclass(frozen=True)
class Quantization:
    """Which numbers of a model are quantized, and how.

    Attributes:
      weights: the half step of weights.
      operands: that of the operands of contractions, if they are quantized when the model runs.
      values: that of all other numbers, if their range is known beforehand.
    """

    weights: HalfStep
    operands: HalfStep | None = None
    values: HalfStep | None = None


def of_weights(weights: Weights) -> Quantization:
    """The quantization of a model whose weights are quantized in a given way."""
    steps = _of_channels(2 ** (weights.least - 1) - 1)
    return Quantization(steps, operands=_symmetric(127) if weights.integers else None)


_CONTRACTIONS = frozenset({"dot_general", "conv_general_dilated"})


class _Evaluation:
    """An evaluation of a program that adds random errors of up to half a step to numbers."""

    def __init__(self, quantization: Quantization, parts: Any = None, ranges: Any = None):
        """
        Args:
          quantization: which numbers get errors.
          parts: the error of each number, as parts of half a step; None for exact numbers.
          ranges: the least and largest value of each activation that is quantized.
        """
        self._quantization = quantization
        self._parts = None if parts is None else iter(parts)
        self._given = None if ranges is None else iter(ranges)
        self.ranges: list[tuple[jax.Array, jax.Array]] = []
        self.kinds: list[str] = []
        self.shapes: list[tuple[int, ...]] = []

    def run(
        self, jaxpr: jex_core.ClosedJaxpr, weights: int, operands: Sequence[Any]
    ) -> list[jax.Array]:
        """The results of a program for its constants and operands.

        The first `weights` of them are weights, which have their errors already.
        """
        quantization = self._quantization
        env: dict[Any, Any] = {}
        # Variables that are computed of weights alone.
        known: set[Any] = set()

        def read(atom):
            return atom.val if isinstance(atom, jex_core.Literal) else env[atom]

        def is_known(atom):
            return isinstance(atom, jex_core.Literal) or atom in known

        variables = [*jaxpr.jaxpr.constvars, *jaxpr.jaxpr.invars]
        for i, (var, x) in enumerate(zip(variables, operands, strict=True)):
            if i < weights:
                env[var] = x
                known.add(var)
            else:
                env[var] = self._value(x, "input")
        for eqn in jaxpr.jaxpr.eqns:
            values = list(map(read, eqn.invars))
            if eqn.primitive.name in _CONTRACTIONS:
                values = [
                    x if is_known(atom) else self._off(x, quantization.operands)
                    for atom, x in zip(eqn.invars, values, strict=True)
                ]
            results = eqn.primitive.bind(*values, **eqn.primitive.get_bind_params(eqn.params))
            if not eqn.primitive.multiple_results:
                results = [results]
            made = [self._value(x, eqn.primitive.name) for x in results]
            env.update(zip(eqn.outvars, made, strict=True))
            if all(map(is_known, eqn.invars)):
                known.update(eqn.outvars)
        return list(map(read, jaxpr.jaxpr.outvars))

    def _value(self, x: Any, kind: str) -> Any:
        """An activation, quantized if activations are; its kind is the primitive that makes it."""
        if self._quantization.values is None or not _is_real(x):
            return x
        x = jnp.asarray(x)
        if self._given is None:
            self.ranges.append((x.min(), x.max()))
            self.kinds.append(kind)
            return self._off(x, self._quantization.values)
        low, high = next(self._given)
        return jnp.clip(self._off(x, self._quantization.values, low, high), low, high)

    def _off(self, x: Any, half_step: HalfStep | None, low: Any = None, high: Any = None) -> Any:
        if half_step is None or not _is_real(x):
            return x
        x = jnp.asarray(x)
        self.shapes.append(x.shape)
        if self._parts is None:
            return x
        low = x.min() if low is None else low
        high = x.max() if high is None else high
        return x + (next(self._parts) * half_step(x, low, high)).astype(x.dtype)


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating) and np.size(x) > 0


def _part(rng: np.random.Generator, shape: tuple[int, ...], amplitude: int) -> np.ndarray:
    """A random number for each element of an array, from minus an amplitude to the amplitude.

    In half of the cases, all elements get the same number: equal elements have equal errors, which
    add up.
    """
    numbers = rng.random(() if rng.random() < 0.5 else shape, np.float32)
    return np.asarray((2 * numbers - 1) * np.float32(amplitude))


@functools.partial(jax.jit, static_argnums=2)
def _moved(x: jax.Array, part: jax.Array, half_step: HalfStep) -> jax.Array:
    """A weight with an error, which is a part of half a step."""
    return x + (part * half_step(x, x.min(), x.max())).astype(x.dtype)


class _Program:
    """The program for inputs of some shapes, and the ranges of its numbers."""

    def __init__(self, entry: Entry, quantization: Quantization, inputs: Sequence[np.ndarray]):
        """
        Args:
          entry: the entry.
          quantization: what is quantized.
          inputs: some of the shapes.
        """
        self._reference = entry.reference
        arguments = self._reference.arguments(inputs)
        traced, results = jax.make_jaxpr(self._reference.fun, return_shape=True)(*arguments)
        self._tree = jax.tree_util.tree_structure(results)
        self._kinds: list[str] = []
        self._ranges: list[tuple[float, float]] = []
        self._shapes: list[tuple[int, ...]] = []
        jaxpr = inline_calls(traced, frozenset())
        weights = len(jaxpr.consts) + self._reference.weights
        self._half_step = quantization.weights
        self._consts, self._weights = jaxpr.consts, weights

        @jax.jit
        def ranges_of(*flat):
            evaluation = _Evaluation(quantization)
            evaluation.run(jaxpr, weights, flat)
            self._kinds, self._shapes = evaluation.kinds, evaluation.shapes
            return evaluation.ranges

        @jax.jit
        def drawn(parts, ranges, flat):
            return _Evaluation(quantization, parts, ranges).run(jaxpr, weights, flat)

        self._ranges_of, self._drawn = ranges_of, drawn

    def look_at(self, inputs: Sequence[np.ndarray]) -> None:
        """Widens the ranges to include the activations for some inputs; all ranges include zero."""
        found = self._ranges_of(*self._flat(inputs))
        known = self._ranges or [(0.0, 0.0)] * len(found)
        self._ranges = [
            _union(own, (float(low), float(high)))
            for own, (low, high) in zip(known, found, strict=True)
        ]

    def widen(self, other: "_Program") -> None:
        """Widens the ranges to those of a program for other shapes.

        That program may have some equations more or fewer, as dimensions of size 1 are not
        broadcast. So activations are matched by the primitives that make them.
        """
        matcher = difflib.SequenceMatcher(None, self._kinds, other._kinds, autojunk=False)
        for i, j, count in matcher.get_matching_blocks():
            pairs = zip(self._ranges[i : i + count], other._ranges[j : j + count], strict=True)
            self._ranges[i : i + count] = itertools.starmap(_union, pairs)

    def results(
        self, inputs: Sequence[np.ndarray], seed: int, amplitude: int = 1
    ) -> list[np.ndarray]:
        """The outputs for some inputs, with random errors of up to an amplitude of half steps.

        Weights are made one after the other, so that there is no more than one copy of them.
        """
        rng = np.random.default_rng(seed)
        flat = self._flat(inputs)
        for i, x in enumerate(flat[: self._weights]):
            if _is_real(x):
                part = _part(rng, np.shape(x), amplitude)
                # JAX runs behind, and would keep the random numbers of all weights.
                flat[i] = jax.block_until_ready(_moved(x, part, self._half_step))
        parts = [np.broadcast_to(_part(rng, shape, amplitude), shape) for shape in self._shapes]
        found = self._drawn(parts, self._ranges, flat)
        arrays = self._reference.results(jax.tree_util.tree_unflatten(self._tree, found))
        return [x.astype(np.float64) for x in arrays]

    def _flat(self, inputs: Sequence[np.ndarray]) -> list[Any]:
        return [*self._consts, *jax.tree_util.tree_leaves(self._reference.arguments(inputs))]


def _union(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The least range that includes two others."""
    return min(one[0], other[0]), max(one[1], other[1])


def spread(
    entry: Entry, quantization: Quantization, data: Sequence[Sequence[np.ndarray]] = ()
) -> list[np.ndarray]:
    """For each element of the outputs, how far a quantized model may be from JAX.

    A real output gets one number, six standard deviations of that element which varies most. An
    element of an integer output, such as the index of a maximum, gets the largest change that
    errors of six half steps cause.

    Args:
      entry: the entry; its samples are the inputs.
      quantization: what is quantized.
      data: inputs by which the ranges of activations are calibrated; by default the samples.
    """
    programs: dict[Any, _Program] = {}
    for inputs in (entry.samples, *data):
        # Sizes are constants in a program, so batches of several sizes have one each.
        shapes = tuple(np.shape(x) for x in inputs)
        if shapes not in programs:
            programs[shapes] = _Program(entry, quantization, inputs)
        programs[shapes].look_at(inputs)
    program, *others = programs.values()
    for other in others:
        program.widen(other)
    results = functools.partial(program.results, entry.samples)

    exact = entry.reference(*entry.samples)
    is_real = [np.issubdtype(x.dtype, np.inexact) for x in exact]
    near = [results(seed) for seed in range(_DRAWS)]
    far = near if all(is_real) else [results(seed, DEVIATIONS) for seed in range(_DRAWS)]
    spreads = []
    for i, x in enumerate(exact):
        draws = near if is_real[i] else far
        errors = np.stack([np.abs(draw[i] - x) for draw in draws])
        errors = np.where(np.isfinite(errors), errors, 0)
        if is_real[i]:
            deviation = np.sqrt(np.mean(errors**2, axis=0))
            spreads.append(np.asarray(DEVIATIONS * np.max(deviation, initial=0)))
        else:
            spreads.append(np.max(errors, axis=0))
    return spreads


# The quantizations of TF Lite: integers of 8 bits but the least one, and float16.
TFLITE = {
    "dynamic": Quantization(weights=_symmetric(127), operands=_symmetric(127)),
    "float16": Quantization(weights=_of_float16),
    "full": Quantization(weights=_symmetric(127), values=of_range(255)),
}

# The quantizations of TF.js: integers between the least and the largest weight, and float16.
TFJS = {
    "uint8": Quantization(weights=of_range(255)),
    "uint16": Quantization(weights=of_range(65535)),
    "float16": Quantization(weights=_of_float16),
}

# The quantizations of ONNX: integers of 8 bits between the least and the largest weight or operand,
# as many on both sides of zero, or of 4 bits between the least and the largest weight of a block.
ONNX = {
    "dynamic": Quantization(weights=of_range(255), operands=of_range(255)),
    "int8": Quantization(weights=_symmetric(127), values=of_range(255)),
    "int4": Quantization(weights=of_range(15)),
}
