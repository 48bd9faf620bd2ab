"""Random programs: compositions of primitives of all families.

A program is a list of instructions, and an instruction is a tuple of small integers. The integers
choose the operation, its operands among the values computed so far, and a parameter. Each choice is
modulo the number of choices, so every list of integers is a valid program. Therefore Hypothesis can
shrink a failing program easily.

Operations that amplify rounding errors are scaled so that they do not. Discontinuous operations are
applied only to values that are exact in every implementation: integers, and floating-point values
that have only been moved, not computed.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

DTYPES = (
    np.float32,
    np.float64,
    np.int32,
    np.int64,
    np.uint8,
    np.uint32,
    np.bool_,
    np.int8,
    np.complex64,
    np.float16,
    ml_dtypes.bfloat16,
)
SHAPES = ((3,), (2, 3), (3, 2), (4,), (2, 2, 3), (), (1, 3))

# Operations do not accept values with more elements, so that programs stay fast.
_MAX_SIZE = 96

Instruction = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True)
class Value:
    """A value of a program: an array, and whether it is exact in every implementation."""

    array: Any
    exact: bool

    @property
    def kind(self) -> str:
        """The kind of its dtype: "b", "i", "u", "f" (bfloat16 included) or "c"."""
        dtype = np.dtype(self.array.dtype)
        return "f" if jnp.issubdtype(dtype, jnp.floating) else dtype.kind

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of random programs.

    Attributes:
      fun: `(value, second value, integer) -> array`.
      kinds: the kinds of values that it accepts as the first operand.
      needs_exact: whether it is discontinuous, so that its operands must be exact.
      keeps_exact: whether its result is exact if its operands are.
      min_rank: the least rank of its operands.
      binary: whether it uses a second value, of the same dtype.
      smooth: whether its derivative is continuous, so that rounding does not change it much.
    """

    fun: Callable[[Any, Any, int], Any]
    kinds: str = "biufc"
    needs_exact: bool = False
    keeps_exact: bool = False
    min_rank: int = 0
    binary: bool = False
    smooth: bool = True

    def accepts(self, value: Value, smooth: bool) -> bool:
        """Returns whether `value` can be its first operand.

        Args:
          value: the value.
          smooth: whether the program is differentiated.
        """
        return (
            (self.smooth or not smooth or value.kind in "biu")
            and value.kind in self.kinds
            and (value.exact or not self.needs_exact or value.kind in "biu")
            and len(value.shape) >= self.min_rank
            and 0 < math.prod(d for d in value.shape if isinstance(d, int)) <= _MAX_SIZE
        )


def _axis(x: Any, n: int) -> int:
    return n % x.ndim


def _dtype(n: int) -> Any:
    return DTYPES[n % len(DTYPES)]


def _broadcast(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], Any]:
    """Returns an operation that applies `fun` to x and to y resized to the shape of x."""

    def apply(x, y, n):
        resized = jnp.resize(y, x.shape) if y.shape != x.shape else y
        return fun(x, resized)

    return apply


def _unary(fun: Callable[[Any], Any]) -> Callable[[Any, Any, int], Any]:
    return lambda x, y, n: fun(x)


def _convert(x, y, n):
    dtype = _dtype(n)
    if jnp.iscomplexobj(x) and not jnp.issubdtype(dtype, jnp.complexfloating):
        x = x.real
    return lax.convert_element_type(x, dtype)


def _indices(x, y, n):
    """Returns integer indices computed from y; some are out of bounds."""
    flat = jnp.ravel(lax.convert_element_type(y, np.int32) if y.dtype != np.int32 else y)
    return lax.rem(flat[:4], np.int32(2 * x.shape[0] + n % 2))


def _gather(x, y, n):
    mode = ("clip", "fill")[n % 2]
    return x.at[_indices(x, y, n)].get(mode=mode, fill_value=1)


def _scatter(x, y, n):
    at = x.at[_indices(x, y, n)]
    mode = ("clip", "drop")[n % 2]
    return at.set(x[0], mode=mode) if n % 3 == 0 else at.add(x[-1], mode=mode)


def _reshape(x, y, n):
    # The same for all sizes of the first dimension, which may be symbolic.
    first, rest = (x.shape or (1,))[0], math.prod(x.shape[1:])
    shapes = [(x.size,), (1, x.size), (x.size, 1), (first, rest), (rest, first)]
    return x.reshape(shapes[n % len(shapes)])


def _pad(x, y, n):
    low, high, interior = n % 3 - 1, n // 3 % 3 - 1, n // 9 % 2
    if low + high < 0:  # Of a single element nothing would be left.
        low = high = 0
    return lax.pad(x, x.dtype.type(1), [(low, high, interior)] + [(0, 0, 0)] * (x.ndim - 1))


def _conv(x, y, n):
    lhs = x.reshape((1, 1, -1))
    rhs = jnp.ravel(x)[: 1 + n % 3].reshape((1, 1, -1))
    out = lax.conv_general_dilated(lhs, rhs, (1 + n % 2,), [(n % 3, 1)])
    return out * x.dtype.type(0.25) if jnp.issubdtype(x.dtype, jnp.inexact) else out


def _dot(x, y, n):
    flat = x.reshape((x.shape[0], -1))
    out = lax.dot_general(flat, flat, (((n % 2,), (n % 2,)), ((), ())))
    if jnp.issubdtype(x.dtype, jnp.inexact):
        out = out * x.dtype.type(1 / max(flat.shape))
    return out


def _window(x, y, n):
    least = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    fun, init = ((lax.add, 0), (lax.max, least))[n % 2]
    window = (2,) + (1,) * (x.ndim - 1)
    strides = (1 + n // 2 % 2,) + (1,) * (x.ndim - 1)
    return lax.reduce_window(x, x.dtype.type(init), fun, window, strides, "SAME")


def _scan(x, y, n):
    def body(carry, element):
        carry = carry * 0.5 + element if jnp.issubdtype(x.dtype, jnp.inexact) else carry + element
        return carry.astype(x.dtype), carry.astype(x.dtype)

    return lax.scan(body, jnp.zeros(x.shape[1:], x.dtype), x, reverse=bool(n % 2))[n // 2 % 2]


def _while(x, y, n):
    limit = np.int32(n % 4)
    one = x.dtype.type(1)
    return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, one - c[1]), (0, x))[1]


def _cond(x, y, n):
    index = lax.convert_element_type(jnp.ravel(y)[0], np.int32)
    return lax.switch(index, [lambda v: v, lambda v: v[::-1], jnp.zeros_like], x)


def _bits(x, y, n):
    key = jax.random.fold_in(jax.random.key(n), lax.convert_element_type(jnp.ravel(x)[0], np.int32))
    return jax.random.bits(key, (3,), np.uint32)


def _halved(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns `fun` with inexact results halved, so that values stay bounded."""

    def apply(x, y):
        result = fun(x, y)
        return result * x.dtype.type(0.5) if jnp.issubdtype(x.dtype, jnp.inexact) else result

    return apply


def _with_opaque_divisor(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns `fun` of integers with a barrier before the divisor, so that XLA does not fold it.

    XLA in JAX crashes when it folds a division of integer constants by zero. And no divisor is
    zero: of an array divided by itself, some versions of XLA make ones in compiled programs alone.
    """
    return lambda x, y: fun(x, lax.optimization_barrier(y | y.dtype.type(1)))


def _bounded(x):
    """Returns x, or tanh(x) if it is floating-point, so that values stay bounded."""
    return jnp.tanh(x) if jnp.issubdtype(x.dtype, jnp.floating) else x


OPERATIONS: tuple[Operation, ...] = (
    # Elementwise.
    Operation(_unary(lax.sin), "f"),
    Operation(_unary(lax.cos), "f"),
    Operation(_unary(lax.tanh), "f"),
    Operation(_unary(lax.logistic), "f"),
    Operation(_unary(lambda x: lax.exp(-lax.abs(x))), "f", smooth=False),
    Operation(_unary(lambda x: lax.log1p(lax.abs(x))), "f", smooth=False),
    Operation(_unary(lambda x: lax.sqrt(lax.abs(x) + x.dtype.type(1))), "f", smooth=False),
    Operation(_unary(lambda x: lax.rsqrt(lax.abs(x) + x.dtype.type(1))), "f", smooth=False),
    Operation(_unary(lax.erf), "f"),
    Operation(_unary(lax.atan), "f"),
    Operation(_unary(lambda x: lax.integer_pow(_bounded(x), 3)), "fi"),
    Operation(_unary(lax.neg), "fiuc", keeps_exact=True),
    Operation(_unary(lax.abs), "fi", keeps_exact=True, smooth=False),
    Operation(_unary(lax.sign), "fiu", needs_exact=True, keeps_exact=True),
    Operation(_unary(lax.floor), "f", needs_exact=True, keeps_exact=True),
    Operation(_unary(lax.round), "f", needs_exact=True, keeps_exact=True),
    Operation(_unary(lax.bitwise_not), "biu", keeps_exact=True),
    Operation(_unary(lax.population_count), "iu", keeps_exact=True),
    Operation(_unary(lax.clz), "iu", keeps_exact=True),
    Operation(_unary(lax.real), "c", keeps_exact=True),
    Operation(_unary(lax.imag), "c", keeps_exact=True),
    Operation(_unary(lax.conj), "c", keeps_exact=True),
    Operation(_broadcast(_halved(lax.add)), "fiuc", keeps_exact=False, binary=True),
    Operation(_broadcast(_halved(lax.sub)), "fiuc", binary=True),
    Operation(_broadcast(lambda x, y: lax.mul(_bounded(x), _bounded(y))), "fiu", binary=True),
    Operation(
        _broadcast(lambda x, y: lax.div(x, lax.abs(y) + x.dtype.type(1))),
        "f",
        binary=True,
        smooth=False,
    ),
    Operation(_broadcast(_with_opaque_divisor(lax.div)), "iu", binary=True),
    Operation(_broadcast(_with_opaque_divisor(lax.rem)), "iu", binary=True),
    Operation(_broadcast(lax.max), "biuf", keeps_exact=True, binary=True, smooth=False),
    Operation(_broadcast(lax.min), "biuf", keeps_exact=True, binary=True, smooth=False),
    Operation(_broadcast(lax.bitwise_and), "biu", binary=True),
    Operation(_broadcast(lax.bitwise_xor), "biu", binary=True),
    Operation(_broadcast(lax.shift_left), "iu", binary=True),
    Operation(_broadcast(lax.shift_right_arithmetic), "iu", binary=True),
    Operation(_broadcast(lax.shift_right_logical), "iu", binary=True),
    Operation(_broadcast(lax.lt), "biuf", needs_exact=True, binary=True),
    Operation(_broadcast(lax.eq), needs_exact=True, binary=True),
    Operation(
        _broadcast(lambda x, y: lax.select(lax.ge(x, y), y, x)),
        "iuf",
        keeps_exact=True,
        binary=True,
        smooth=False,
    ),
    # A derivative that has been in a narrower dtype has fewer digits than its own dtype.
    Operation(_convert, needs_exact=True, keeps_exact=True, smooth=False),
    # Shape.
    Operation(_reshape, keeps_exact=True),
    Operation(_unary(jnp.transpose), keeps_exact=True),
    Operation(lambda x, y, n: lax.broadcast(x, (1 + n % 3,)), keeps_exact=True),
    Operation(lambda x, y, n: lax.rev(x, (_axis(x, n),)), keeps_exact=True, min_rank=1),
    Operation(lambda x, y, n: x[n % x.shape[0] :: 1 + n % 2], keeps_exact=True, min_rank=1),
    Operation(_pad, "biufc", keeps_exact=True, min_rank=1),
    Operation(lambda x, y, n: lax.concatenate([x, x[: n % 2]], 0), keeps_exact=True, min_rank=1),
    Operation(
        lambda x, y, n: lax.dynamic_slice_in_dim(x, np.int32(n % 5 - 1), 1),
        keeps_exact=True,
        min_rank=1,
    ),
    Operation(
        lambda x, y, n: lax.dynamic_update_slice_in_dim(x, x[:1], np.int32(n % 5 - 1), 0),
        keeps_exact=True,
        min_rank=1,
    ),
    Operation(_gather, keeps_exact=True, min_rank=1),
    Operation(_scatter, "iuf", min_rank=1),
    # Reductions, sorting, contractions.
    Operation(
        lambda x, y, n: (
            jnp.sum(x, _axis(x, n), dtype=x.dtype)
            * (x.dtype.type(0.5) if jnp.issubdtype(x.dtype, jnp.inexact) else x.dtype.type(1))
        ),
        "iufc",
        min_rank=1,
    ),
    Operation(
        lambda x, y, n: jnp.max(x, _axis(x, n)), "biuf", keeps_exact=True, min_rank=1, smooth=False
    ),
    Operation(
        lambda x, y, n: jnp.min(x, _axis(x, n)), "biuf", keeps_exact=True, min_rank=1, smooth=False
    ),
    Operation(lambda x, y, n: jnp.any(x, _axis(x, n)), "b", min_rank=1),
    Operation(
        lambda x, y, n: lax.argmax(x, _axis(x, n), np.int32), "iuf", needs_exact=True, min_rank=1
    ),
    Operation(lambda x, y, n: lax.cumsum(_bounded(x), _axis(x, n)), "iuf", min_rank=1),
    Operation(
        lambda x, y, n: lax.cummax(x, _axis(x, n)),
        "iuf",
        keeps_exact=True,
        min_rank=1,
        smooth=False,
    ),
    Operation(
        lambda x, y, n: lax.sort(x, dimension=_axis(x, n)),
        "biuf",
        keeps_exact=True,
        min_rank=1,
        smooth=False,
    ),
    Operation(
        lambda x, y, n: lax.top_k(x, 1 + n % x.shape[-1])[n % 2],
        "iuf",
        needs_exact=True,
        min_rank=1,
    ),
    Operation(_dot, "biuf", min_rank=1),
    Operation(_conv, "iuf", min_rank=1),
    Operation(_window, "iuf", min_rank=1, smooth=False),
    # Control flow, calls, random bits.
    Operation(_scan, "iuf", min_rank=1),
    Operation(_while, "iuf"),
    Operation(_cond, "biuf", needs_exact=True, keeps_exact=True, min_rank=1),
    Operation(lambda x, y, n: jax.jit(lambda v: jax.nn.relu(v) + v)(x), "f", smooth=False),
    Operation(lambda x, y, n: jax.grad(lambda v: jnp.sum(jnp.sin(v)))(x), "f"),
    Operation(_bits, "iu"),
)


def inputs(seed: int, count: int) -> list[np.ndarray]:
    """Returns the arguments of a program: `count` arrays of various dtypes and shapes."""
    rng = np.random.default_rng(seed)
    arrays = []
    for i in range(count):
        dtype = np.dtype(DTYPES[(seed + i) % len(DTYPES)])
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        x: np.ndarray = rng.uniform(-3, 3, shape)
        if dtype == np.bool_:
            x = x > 0
        elif dtype.kind == "u":
            x = np.abs(x) * 20
        elif dtype.kind == "c":
            x = x + 1j * rng.uniform(-3, 3, shape)
        arrays.append(np.asarray(x).astype(dtype))
    return arrays


def program(instructions: Sequence[Instruction], smooth: bool = False) -> Callable[..., list[Any]]:
    """Returns the JAX function `(*inputs) -> results` that the instructions describe.

    It takes the inputs and returns the list of values that no later instruction uses.

    Args:
      instructions: the instructions.
      smooth: whether it is to be differentiated.
    """

    def fun(*args):
        values = [Value(jnp.asarray(arg), True) for arg in args]
        used: set[int] = set()
        for which, first, second, n in instructions:
            operation = OPERATIONS[which % len(OPERATIONS)]
            accepted = [i for i, value in enumerate(values) if operation.accepts(value, smooth)]
            if not accepted:
                continue
            i = accepted[first % len(accepted)]
            x, j = values[i], i
            if operation.binary:
                same = [k for k in accepted if values[k].array.dtype == x.array.dtype]
                j = same[second % len(same)]
            elif operation.fun in (_gather, _scatter, _cond):
                integers = [
                    k for k, value in enumerate(values) if value.kind in "iu" and value.array.size
                ]
                if not integers:
                    continue
                j = integers[second % len(integers)]
            y = values[j]
            result = operation.fun(x.array, y.array, n)
            exact = x.exact and y.exact and operation.keeps_exact
            values.append(Value(result, exact or result.dtype.kind in "biu"))
            used |= {i, j}
        return [v.array for k, v in enumerate(values) if k not in used and k >= len(args)]

    return fun
