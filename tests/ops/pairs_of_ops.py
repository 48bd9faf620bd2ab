"""A table of pairs of ops: whether `g(f(x))` in a graph is what it is when each op runs alone.

TensorFlow's optimizer looks at ops and at those before them, so that ops that are right alone may
be wrong together. Many pairs are in one graph. Each has an argument of its own, as the optimizer
joins what is computed twice, and leaves alone what is used twice.

    python -m tests.ops.pairs_of_ops                                      # all pairs
    python -m tests.ops.pairs_of_ops --dtype uint8 --first sub_from_zero  # some
    python -m tests.ops.pairs_of_ops --place loop                         # all, in loops
"""

import argparse
import dataclasses
import functools
import itertools
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

import lowering
from harnesses import compare
from harnesses.arguments import ALL, name, specials

_PER_GRAPH = 60
_ROW = 4  # The size of the last axis of arguments.


def _like(x: Any, values: Any) -> Any:
    """Known numbers in the dtype of `x`, of which there are as many as `x` has in its last axis."""
    if not jnp.ndim(x):
        return jnp.asarray(values[0]).astype(x.dtype)
    return np.resize(np.asarray(values), x.shape[-1:]).astype(x.dtype)


def _one(x: Any) -> Any:
    return np.ones((), x.dtype)


_ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "abs": jnp.abs,
    "neg": lax.neg,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt,
    "square": jnp.square,
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "logistic": lax.logistic,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "erf": lax.erf,
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "not": lambda x: ~x,
    "logical_not": jnp.logical_not,
    "isnan": jnp.isnan,
    "isfinite": jnp.isfinite,
    "conj": jnp.conj,
    "real": jnp.real,
    "imag": jnp.imag,
    "add_one": lambda x: x + _one(x),
    "sub_one": lambda x: x - _one(x),
    "one_sub": lambda x: _one(x) - x,
    "sub_from_zero": lambda x: jnp.zeros_like(x) - x,
    "sub_from_minus_zero": lambda x: -jnp.zeros_like(x) - x,
    "sub_from_zeros": lambda x: _like(x, [0.0, -0.0, 1]) - x,
    "add_zero": lambda x: x + jnp.zeros_like(x),
    "sub_zero": lambda x: x - np.zeros((), x.dtype),
    "mul_zero": lambda x: x * np.zeros((), x.dtype),
    "mul_one": lambda x: x * jnp.ones_like(x),
    "mul_two": lambda x: x * np.asarray(2, x.dtype),
    "mul_row": lambda x: _like(x, [1, 3, 2, 5]) * x,
    "add_row": lambda x: _like(x, [1, 3, 2, 5]) + x,
    "div_three": lambda x: x / np.asarray(3, x.dtype),
    "div_row": lambda x: x / _like(x, [1, 3, 7, 49]),
    "div_large": lambda x: x / _like(x, [1e35, 3, 1e4]),
    "div_one": lambda x: x / _one(x),
    "one_div": lambda x: _one(x) / x,
    "two_div": lambda x: np.asarray(2, x.dtype) / x,
    "lax_div": lambda x: lax.div(x, np.full(x.shape, 3, x.dtype)),
    "rem": lambda x: x % np.asarray(3, x.dtype),
    "floor_div": lambda x: x // np.asarray(3, x.dtype),
    "pow_2": lambda x: x**2,
    "pow_3": lambda x: x**3,
    "pow_half": lambda x: x ** np.asarray(0.5, x.dtype),
    "pow_minus_1": lambda x: lax.integer_pow(x, -1),
    "max_zero": lambda x: jnp.maximum(x, np.zeros((), x.dtype)),
    "min_one": lambda x: jnp.minimum(x, _one(x)),
    "clip": lambda x: jnp.clip(x, np.zeros((), x.dtype), np.asarray(3, x.dtype)),
    "shift_left": lambda x: x << _one(x),
    "shift_right": lambda x: x >> _one(x),
    "and": lambda x: x & _one(x),
    "or": lambda x: x | _one(x),
    "xor": lambda x: x ^ _one(x),
    "greater": lambda x: x > _one(x),
    "greater_equal": lambda x: x >= np.zeros((), x.dtype),
    "less": lambda x: x < _one(x),
    "equal": lambda x: x == _one(x),
    "not_equal": lambda x: x != x,
    "double": lambda x: x + x,
    "double_again": lambda x: jnp.reshape(x, x.shape) + lax.optimization_barrier(x),
    "minus_itself": lambda x: x - x,
    "times_itself": lambda x: x * x,
    "over_itself": lambda x: x / x,
    "add_first": lambda x: x + x[0],
    "first_minus": lambda x: x[0] - x,
    "times_first": lambda x: x[0] * x,
    "over_first": lambda x: x / x[0],
    "add_reversed": lambda x: x[::-1] + x,
    "add_twice": lambda x: (x + x[0]) + (x[::-1] + x),
    "sum_of_products": lambda x: x * x[0] + x * x[::-1],
    "square_of_difference": lambda x: (x - x[0]) ** 2,
    "max_first": lambda x: jnp.maximum(x, x[0]),
    "select_positive": lambda x: jnp.where(x > 0, x, np.zeros((), x.dtype)),
    "select_not_negative": lambda x: jnp.where(~(x >= 0), np.zeros((), x.dtype), x),
    "div_sqrt": lambda x: x / jnp.sqrt(x),
    "hypot": lambda x: jnp.sqrt(x * x + _one(x)),
}

_STRUCTURAL: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: jnp.sum(x, -1),
    "sum_rows": lambda x: jnp.sum(x, 0),
    "sum_all": jnp.sum,
    "prod": lambda x: jnp.prod(x, -1),
    "max": lambda x: jnp.max(x, -1),
    "min": lambda x: jnp.min(x, 0),
    "mean": lambda x: jnp.mean(x, 0, keepdims=True),
    "var": lambda x: jnp.var(x, -1),
    "argmax": lambda x: jnp.argmax(jnp.real(x), -1),
    "argmin": lambda x: jnp.argmin(jnp.real(x), 0),
    "any": lambda x: jnp.any(x, -1),
    "all": lambda x: jnp.all(x, 0),
    "cumsum": lambda x: jnp.cumsum(x, -1),
    "sort": lambda x: jnp.sort(x, -1),
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "first": lambda x: x[0],
    "last": lambda x: x[..., -1:],
    "every_other": lambda x: x[..., ::2],
    "reverse": lambda x: x[::-1],
    "take": lambda x: jnp.take(x, np.array([1, 0, 1]), 0),
    "set": lambda x: x.at[0].set(np.zeros((), x.dtype)),
    "add_at": lambda x: x.at[np.array([0, 1, 0])].add(_one(x)),
    "transpose": jnp.transpose,
    "flatten": jnp.ravel,
    "columns": lambda x: jnp.reshape(x, (-1, 2)),
    "expand": lambda x: x[:, None],
    "squeeze": jnp.squeeze,
    "broadcast": lambda x: jnp.broadcast_to(x, (2, *x.shape)),
    "broadcast_rows": lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 2, *x.shape[1:])),
    "stack": lambda x: jnp.stack([x, x]),
    "concatenate": lambda x: jnp.concatenate([x, x[:1], x]),
    "tile": lambda x: jnp.tile(x, 2),
    "roll": lambda x: jnp.roll(x, 1, -1),
    "pad": lambda x: jnp.pad(x, 1),
    "to_float32": lambda x: x.astype(np.float32),
    "to_float64": lambda x: x.astype(np.float64),
    "to_bfloat16": lambda x: x.astype(jnp.bfloat16),
    "to_int32": lambda x: x.astype(np.int32),
    "to_uint8": lambda x: x.astype(np.uint8),
    "to_bool": lambda x: x.astype(bool),
    "bits": lambda x: lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}")),
    "matmul": lambda x: x @ np.full((x.shape[-1], 2), 2, x.dtype),
    "gram": lambda x: x @ x.T,
    "matmul_zeros": lambda x: x @ np.zeros((x.shape[-1], 2), x.dtype),
}

OPS = {**_ELEMENTWISE, **_STRUCTURAL}

Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A pair of ops whose graph computes something else, for a dtype and a target."""

    target: str
    dtype: str
    pair: Pair
    message: str


def argument(dtype: Any) -> np.ndarray:
    """Special values of a dtype, as rows."""
    values = specials(dtype)
    if values.dtype.kind == "c":
        values = values[:: max(1, len(values) // 40)]
    return np.resize(values, (-(-len(values) // _ROW), _ROW))


def program(pair: Pair) -> Callable[[Any], Any]:
    """The second op of what the first one computes."""
    first, second = (OPS[op] for op in pair)
    return lambda x: second(first(x))


def _in_loop(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function in the body of a loop, of which each run has other numbers."""

    def loop(x):
        def body(state):
            x, _, i = state
            return x[::-1], fun(x), i + 1

        result = jnp.zeros_like(jax.eval_shape(fun, x))
        return lax.while_loop(lambda state: state[2] < 2, body, (x, result, 0))[1]

    return loop


def _in_branch(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function in a branch, where the condition is not known before it runs."""
    return lambda x: lax.cond(
        jnp.any(x == x), fun, lambda x: jnp.zeros_like(jax.eval_shape(fun, x)), x
    )


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in a program a pair stands: TensorFlow's optimizer works on each function of a graph.

    Attributes:
      around: puts a function there.
      last: what the function is given when it runs for the last time, from what the program is.
    """

    around: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
    last: Callable[[np.ndarray], np.ndarray] = lambda x: x


PLACES = {
    "graph": Place(lambda fun: fun),
    "loop": Place(_in_loop, lambda x: x[::-1]),
    "branch": Place(_in_branch),
}


def pairs_of(dtype: Any, seed: str = "", count: int | None = None) -> Iterator[Pair]:
    """The pairs that JAX accepts for a dtype, in an order that depends on the seed.

    Args:
      dtype: of the arguments.
      seed: anything.
      count: how many pairs there are at most; all if None.
    """
    argument_shape = _struct(argument(dtype))
    pairs = list(itertools.product(OPS, OPS))
    random.Random(f"{seed} {name(dtype)}").shuffle(pairs)
    shape_of = functools.cache(lambda op, of: _shape_of(OPS[op], of))
    accepted = (
        (first, second)
        for first, second in pairs
        if (of := shape_of(first, argument_shape)) is not None and shape_of(second, of) is not None
    )
    return itertools.islice(accepted, count)


def _struct(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _shape_of(fun: Callable[[Any], Any], of: jax.ShapeDtypeStruct) -> Any:
    """What a function makes of arrays of a shape and dtype; None if it refuses them."""
    try:
        return _struct(jax.eval_shape(fun, of))
    except (TypeError, ValueError, IndexError, AttributeError, jax.errors.JAXIndexError):
        return None


def faults(target: str, dtype: Any, pairs: Sequence[Pair], place: str = "graph") -> Iterator[Fault]:
    """The pairs that a graph computes otherwise than each op alone, and than `jax.jit`.

    That each op alone is right is what sweeps are for.

    Args:
      target: of the conversion.
      dtype: of the arguments.
      pairs: the pairs.
      place: where they stand; a name of `PLACES`.
    """
    for start in range(0, len(pairs), _PER_GRAPH):
        group = pairs[start : start + _PER_GRAPH]
        try:
            yield from _faults(target, dtype, group, PLACES[place])
        except Exception as error:
            if len(group) == 1 and _is_of_jax(error):
                continue
            if len(group) == 1:
                yield Fault(target, name(dtype), group[0], _first_line(error))
            else:
                for pair in group:
                    yield from faults(target, dtype, [pair], place)


def _is_of_jax(error: Exception) -> bool:
    """Whether JAX cannot compile a pair: XLA makes a clamp of bools in loops, and lacks that."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "UNIMPLEMENTED" in str(error)


def _faults(target: str, dtype: Any, pairs: Sequence[Pair], place: Place) -> Iterator[Fault]:
    x = argument(dtype)

    def fun(*xs):
        return [place.around(program(pair))(x) for pair, x in zip(pairs, xs, strict=True)]

    converted = lowering.convert(fun, target=target, with_gradient=False)
    together = tf.function(converted, autograph=False)(*[tf.constant(x) for _ in pairs])
    for pair, result in zip(pairs, together, strict=True):
        first = _first(target, dtype, pair[0], place)
        alone = np.asarray(_alone(target, pair[1])(first).numpy())
        graph = np.asarray(result.numpy())
        if not compare.structure([alone], [graph]).equal:
            message = f"{graph.dtype}{graph.shape}, not {alone.dtype}{alone.shape}"
            yield Fault(target, name(dtype), pair, message)
        elif not _is_right(alone, graph):
            expected = np.asarray(jax.jit(place.around(program(pair)))(x))
            # A graph may have another form of one op, whose last digits differ.
            of_graph = _first(target, dtype, pair[0], place, in_graph=True)
            one_by_one = np.asarray(_alone(target, pair[1])(of_graph).numpy())
            others = expected, _either(alone, expected, graph), one_by_one
            if not any(_is_right(y, graph) for y in others):
                found = compare.close()([alone], [graph], [])
                yield Fault(target, name(dtype), pair, found.message)


@functools.cache
def _alone(target: str, op: str) -> Callable[[Any], Any]:
    """An op converted without others, so that no pass and no optimizer sees it beside another."""
    return lowering.convert(OPS[op], target=target, with_gradient=False)


@functools.cache
def _first(target: str, dtype: Any, op: str, place: Place, in_graph: bool = False) -> tf.Tensor:
    """What an op alone makes of the last argument in a place."""
    run = _alone(target, op)
    run = tf.function(run, autograph=False) if in_graph else run
    return run(tf.constant(place.last(argument(dtype))))


def is_same_compiled(pair: Pair, x: np.ndarray) -> bool:
    """Whether JAX computes a pair of an array op by op as `jax.jit` does.

    XLA's simplifications of compositions are not always right: it makes 0 of 0 / 0.
    """
    fun = program(pair)
    compiled = np.asarray(jax.jit(fun)(x))
    with jax.disable_jit():
        alone = np.asarray(fun(jnp.asarray(x)))
    return _is_right(alone, compiled)


def _is_right(expected: np.ndarray, graph: np.ndarray) -> bool:
    # Ops that the optimizer leaves out, or computes itself, do not make zeros of subnormal numbers.
    expected, graph = _flushed(expected), _flushed(graph)
    if compare.exact([expected], [graph], []).equal:
        return True
    return compare.signed(compare.close())([expected], [graph], []).equal


def _either(eager: np.ndarray, expected: np.ndarray, graph: np.ndarray) -> np.ndarray:
    """What ops compute alone, but with JAX's elements where the graph has the same.

    What becomes of a subnormal number may differ between all three.
    """
    if not eager.shape == expected.shape == graph.shape:
        return eager
    x, y = _flushed(expected), _flushed(graph)
    parts = [z.astype(np.complex128) for z in (x, y)]
    same_signs = [np.equal(*(np.signbit(get(z)) for z in parts)) for get in (np.real, np.imag)]
    is_same = (x == y) & np.logical_and(*same_signs)
    return np.where(is_same, graph, eager)


def _flushed(x: np.ndarray) -> np.ndarray:
    """An array with zeros in place of subnormal numbers."""
    if x.dtype.kind == "c":
        parts = _flushed(np.stack([x.real, x.imag], -1))
        return np.ascontiguousarray(parts).view(x.dtype)[..., 0]
    if not jnp.issubdtype(x.dtype, np.floating):
        return x
    return np.where(abs(x) < jnp.finfo(x.dtype).tiny, np.copysign(0, x).astype(x.dtype), x)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def main(argv: Iterable[str] | None = None) -> int:
    """Prints the faults of all pairs; returns how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", nargs="*", default=[name(dtype) for dtype in ALL])
    parser.add_argument("--target", nargs="*", default=["tf", "xla"])
    parser.add_argument("--first", nargs="*", default=list(OPS))
    parser.add_argument("--second", nargs="*", default=list(OPS))
    parser.add_argument("--place", nargs="*", default=["graph"], choices=list(PLACES))
    parser.add_argument("--count", type=int, help="only so many pairs of each dtype")
    parser.add_argument("--seed", default="", help="which they are")
    options = parser.parse_args(argv)
    count = 0
    with jax.enable_x64(True), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, target, place in itertools.product(options.dtype, options.target, options.place):
            pairs = pairs_of(jnp.dtype(dtype), options.seed, options.count)
            chosen = [(f, g) for f, g in pairs if f in options.first and g in options.second]
            found = 0
            for fault in faults(target, jnp.dtype(dtype), chosen, place):
                print(
                    f"{target} {dtype} {place} {fault.pair[1]}({fault.pair[0]}(x)): {fault.message}"
                )
                found += 1
            print(f"{target} {dtype} {place}: {len(chosen)} pairs, {found} faults", flush=True)
            count += found
    return count


if __name__ == "__main__":
    raise SystemExit(min(main(), 1))
