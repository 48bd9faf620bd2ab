"""Primitives on narrow dtypes: numbers of eight bits or fewer.

TensorFlow programs can take few of these dtypes as arguments in every mode. Therefore arguments and
results are of wider dtypes, and the function of the harness converts them. Most harnesses are for
the formats that hardware supports (`MAIN`). The others differ from them in rounding.
"""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import name
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close, close_to_largest, exact
from harnesses.harness import DERIVATIVES, Harness, harnesses
from lowering import narrow_formats
from lowering.ops import dtypes


def _others(narrow, main):
    """The scalar types of narrow dtypes that are not among the main ones."""
    return tuple(dtype.type for dtype in narrow if dtype.type not in main)


E8M0 = narrow_formats.E8M0.type
MAIN_FLOAT = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
OTHER_FLOAT = _others(narrow_formats.FLOAT, (*MAIN_FLOAT, E8M0))
FLOAT = (*MAIN_FLOAT, *OTHER_FLOAT, E8M0)
MAIN_INTEGER = (ml_dtypes.int4, ml_dtypes.uint4)
OTHER_INTEGER = _others(narrow_formats.SIGNED + narrow_formats.UNSIGNED, MAIN_INTEGER)
INTEGER = MAIN_INTEGER + OTHER_INTEGER
MAIN = MAIN_FLOAT + MAIN_INTEGER


def _is_float(dtype):
    return dtype in FLOAT


def _wide(dtype):
    """Returns the dtype of arguments that hold values of the narrow `dtype`."""
    return np.float32 if _is_float(dtype) else np.int32


def _in_dtype(fun, dtype):
    """Returns `fun` with arguments converted to `dtype`, and results converted to a wide dtype."""

    def converted(*args):
        results = fun(*(lax.convert_element_type(x, dtype) for x in args))
        is_single = not isinstance(results, tuple | list)
        results = [_widened(x) for x in ([results] if is_single else results)]
        return results[0] if is_single else results

    return converted


def _widened(x):
    # E8M0 is converted to float64: before a conversion to float32, XLA removes the rounding to
    # e8m0.
    wide = {np.dtype(E8M0): np.float64, **{np.dtype(d): np.float32 for d in FLOAT if d != E8M0}}
    wide |= {np.dtype(d): np.int32 for d in INTEGER}
    return lax.convert_element_type(x, wide[x.dtype]) if x.dtype in wide else x


def _all_values(dtype):
    """Returns all values of a dtype, as a vector of a wider dtype."""
    info = ml_dtypes.finfo(dtype) if _is_float(dtype) else ml_dtypes.iinfo(dtype)
    if not _is_float(dtype):
        return np.arange(info.min, int(info.max) + 1, dtype=np.int32)
    return np.arange(1 << info.bits, dtype=np.uint8).view(dtype).astype(np.float32)


def _special_values(dtype):
    """Returns the values of a dtype on which implementations differ."""
    if not _is_float(dtype):
        return _all_values(dtype)
    info = ml_dtypes.finfo(dtype)
    values = [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, -2.5, 3.0, -7.25, np.inf, -np.inf, np.nan]
    values += map(float, [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal])
    if dtype == E8M0:  # In computations JAX treats the least power of two, 2**-127, as zero.
        values = [0.5, 1.0, 2.0, 8.0, 2.0**-20, 2.0**-126, 2.0**100, 2.0**127, np.nan]
    return np.array(values).astype(dtype).astype(np.float32)


def _pairs(dtype):
    return tuple(map(np.ravel, np.meshgrid(_special_values(dtype), _special_values(dtype))))


def _ulp(dtype):
    """Returns a comparer that allows one ulp: JAX rounds twice, first to float16."""
    info = ml_dtypes.finfo(dtype)
    return close(rtol=float(info.eps), atol=float(info.smallest_subnormal))


def _rounded_derivatives(dtype):
    """Returns a comparer of derivatives of which XLA may round every step to a dtype, or none."""
    eps = float(ml_dtypes.finfo(dtype).eps) / float(np.finfo(np.float32).eps)
    return close_to_largest(4 * eps, only_finite=True)


def _elementwise(primitive, dtype, fun, args, comparer=exact):
    derivatives = DERIVATIVES if comparer is exact else _rounded_derivatives(dtype)
    return Harness(
        primitive,
        name(dtype),
        _in_dtype(fun, dtype),
        args,
        comparer,
        dtype,
        # E8M0 has neither zero nor negative numbers.
        derivatives=None if dtype == E8M0 else derivatives,
    )


def _between(dtype):
    """Returns the values of a dtype, values between them, and values beyond the largest."""
    values = np.unique(_all_values(dtype)[np.isfinite(_all_values(dtype))].astype(np.float64))
    middle = (values[1:] + values[:-1]) / 2
    largest = values[-1]
    beyond = [*(largest * np.array([1.02, 1.06, 1.1, 1.24, 1.25, 2, -2])), np.inf, -np.inf, np.nan]
    beside = [np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]
    if _is_float(dtype) and dtype != E8M0:
        beside += [middle * (1 + 2.0**-9), middle * (1 - 2.0**-9)]
    if dtype == E8M0:
        beside, middle = [], middle[middle > 2.0**-120]
    return np.concatenate([values, middle, *beside, beyond, [0.0, -0.0]])


_FROM_INTEGER = (np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64)


def _targets(dtype):
    """Yields the dtypes to which values of a dtype are converted."""
    yield from (np.bool_, np.float16, np.float32, np.float64, np.complex128, *MAIN_FLOAT)
    if dtype != ml_dtypes.float4_e2m1fn:  # XLA treats 6, its largest value, as out of range.
        yield from (np.int8, np.uint32, np.int64, *MAIN_INTEGER)


@harnesses
@symbolic(every_axis)
def convert_element_type():
    for dtype in (*FLOAT, *INTEGER):

        def round_trip(*args, dtype=dtype):
            to = np.float64 if _is_float(dtype) else np.int32
            return [lax.convert_element_type(lax.convert_element_type(x, dtype), to) for x in args]

        def to_targets(x, dtype=dtype):
            targets = (target for target in _targets(dtype) if target != dtype)
            return [lax.convert_element_type(x, target) for target in targets]

        def harness(case, fun, args, dtype=dtype):
            case = f"{case}_{name(dtype)}"
            derivatives = None if dtype == E8M0 else DERIVATIVES
            return Harness(
                "convert_element_type", case, fun, args, dtype=dtype, derivatives=derivatives
            )

        with np.errstate(over="ignore"):
            yield harness("floats", round_trip, [_between(dtype).astype(s) for s in dtypes.FLOAT])
        x = np.array([0, 1, 2, 3, 5, 7, 9, 15, 16, 17, 30, 100, 127, -1, -8, -9, -100])
        yield harness("integers", round_trip, [x.astype(s) for s in _FROM_INTEGER])
        if dtype in MAIN:
            yield harness(
                "complex64", round_trip, [(_special_values(dtype) + 1j).astype(np.complex64)]
            )
        yield harness("to", _in_dtype(to_targets, dtype), [_all_values(dtype)])


@harnesses
@symbolic(every_axis)
def arguments_and_results():
    """Yields harnesses of programs whose argument or result is of a narrow dtype."""
    for dtype in (*FLOAT, *INTEGER):
        widen = jax.jit(functools.partial(lax.convert_element_type, new_dtype=_wide(dtype)))
        narrow = jax.jit(functools.partial(lax.convert_element_type, new_dtype=dtype))
        wide = _special_values(dtype)
        yield Harness("jit", f"result_{name(dtype)}", narrow, (wide,), dtype=np.dtype(dtype))
        if dtype not in (ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3, E8M0):
            yield Harness("jit", f"argument_{name(dtype)}", widen, (wide.astype(dtype),))


@harnesses
@symbolic(every_axis)
def bitcast_convert_type():
    for dtype in (*FLOAT, *INTEGER):
        bits = (ml_dtypes.finfo if _is_float(dtype) else ml_dtypes.iinfo)(dtype).bits

        def from_bits(*args, dtype=dtype):
            return [_widened(lax.bitcast_convert_type(x, dtype)) for x in args]

        def to_bits(x, bits=bits):
            by_byte = x if bits == 8 else lax.reshape(x, (x.size * bits // 8, 8 // bits))
            by_two = lax.reshape(x, (x.size * bits // 16, 16 // bits))
            return (
                lax.bitcast_convert_type(by_byte, np.uint8),
                lax.bitcast_convert_type(by_two, np.int16),
            )

        x = _all_values(dtype)
        if dtype in OTHER_INTEGER:
            x = np.tile(x, 8)
        elif _is_float(dtype):
            # TensorFlow changes the bits of NaNs.
            x = x[~np.isnan(x)]
            x = x[: len(x) // 4 * 4]
        codes = np.arange(256, dtype=np.uint8)
        wider = (codes[:40].astype(np.uint16) * 731).reshape(8, 5)
        case = name(dtype)
        args = (codes, wider)
        yield Harness("bitcast_convert_type", f"to_{case}", from_bits, args, dtype=dtype)
        fun = _in_dtype(to_bits, dtype)
        yield Harness(
            "bitcast_convert_type", f"from_{case}", fun, (x,), dtype=dtype, symbolic=axes()
        )


_EXACT_UNARY = {
    "abs": lax.abs,
    "ceil": lax.ceil,
    "floor": lax.floor,
    "is_finite": lax.is_finite,
    "neg": lax.neg,
    "round": lax.round,
    "sign": lax.sign,
    "sqrt": lax.sqrt,
    "square": lax.square,
    "integer_pow": functools.partial(lax.integer_pow, y=3),
}
_ROUNDED_UNARY = {
    "asin": lax.asin,
    "atan": lax.atan,
    "cbrt": lax.cbrt,
    "cos": lax.cos,
    "erf": lax.erf,
    "erf_inv": lax.erf_inv,
    "exp": lax.exp,
    "exp2": lax.exp2,
    "expm1": lax.expm1,
    "lgamma": lax.lgamma,
    "log": lax.log,
    "log1p": lax.log1p,
    "logistic": lax.logistic,
    "rsqrt": lax.rsqrt,
    "sin": lax.sin,
    "tan": lax.tan,
    "tanh": lax.tanh,
}


@harnesses
@symbolic(every_axis)
def unary_float():
    for dtype in MAIN_FLOAT:
        args = (_all_values(dtype),)
        for primitive, fun in _EXACT_UNARY.items():
            yield _elementwise(primitive, dtype, fun, args)
        for primitive, fun in _ROUNDED_UNARY.items():
            if dtype == MAIN_FLOAT[0] or primitive in ("exp2", "log", "logistic", "tanh"):
                yield _elementwise(primitive, dtype, fun, args, _ulp(dtype))
    for dtype in OTHER_FLOAT:
        args = (_all_values(dtype),)
        yield _elementwise("neg", dtype, lax.neg, args)
        yield _elementwise("sqrt", dtype, lax.sqrt, args, _ulp(dtype))


@harnesses
@symbolic(every_axis)
def reduce_precision():
    def fun(x):
        return [lax.reduce_precision(x, e, m) for e, m in ((3, 2), (5, 2), (4, 1), (2, 10))]

    for dtype in (*MAIN_FLOAT, *OTHER_FLOAT):
        args = (_all_values(dtype),)
        yield Harness("reduce_precision", name(dtype), _in_dtype(fun, dtype), args, dtype=dtype)


BINARY_FLOAT = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "max": lax.max,
    "min": lax.min,
    "nextafter": lax.nextafter,
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
}


@harnesses
@symbolic(every_axis)
def binary_float():
    for dtype in FLOAT:
        for primitive, fun in BINARY_FLOAT.items():
            if dtype not in MAIN_FLOAT and primitive not in ("add", "div", "max", "nextafter"):
                continue
            if dtype == E8M0 and primitive == "nextafter":
                continue  # JAX takes the highest bit of the exponent for a sign bit.
            yield _elementwise(primitive, dtype, fun, _pairs(dtype))
    for dtype in MAIN_FLOAT:
        for primitive, fun in {"pow": lax.pow, "atan2": lax.atan2}.items():
            yield _elementwise(primitive, dtype, fun, _pairs(dtype), _ulp(dtype))


_ON_INTEGERS = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "max": lax.max,
    "min": lax.min,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "mulhi": lax.mulhi,
    "eq": lax.eq,
    "lt": lax.lt,
    "ge": lax.ge,
    "neg": lambda x, _: lax.neg(x),
    "not": lambda x, _: lax.bitwise_not(x),
    "sign": lambda x, _: lax.sign(x),
    "clz": lambda x, _: lax.clz(x),
    "population_count": lambda x, _: lax.population_count(x),
    "integer_pow": lambda x, _: lax.integer_pow(x, 5),
}


_ON_TWO_BITS = "add div mulhi not shift_right_arithmetic clz population_count".split()


@harnesses
@symbolic(every_axis)
def on_integers():
    for dtype in INTEGER:
        for primitive, fun in _ON_INTEGERS.items():
            if dtype not in MAIN_INTEGER and primitive not in _ON_TWO_BITS:
                continue
            yield _elementwise(primitive, dtype, fun, _pairs(dtype))


def _window_sum(x):
    zero = jnp.zeros((), x.dtype)
    return lax.reduce_window(x, zero, lax.add, (1, 2), (1, 1), "VALID")


def _dot(x, preferred=None):
    contract = (((1,), (1,)), ((), ()))
    return lax.dot_general(x, x[:2], contract, preferred_element_type=preferred)


def _rounded_steps(x):
    """A reduction with a function that has no primitive of its own; its order does not matter."""
    zero = jnp.zeros((), x.dtype)
    return lax.reduce(x, zero, lambda a, b: lax.max(lax.max(a, b), a), (0,))


def _gather(mode):
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    indices = np.array([[1], [20], [-1]], np.int32)
    return lambda x: lax.gather(x, indices, numbers, (1, x.shape[1]), mode=mode)


def _scatter(scatter):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lambda x: scatter(x, np.array([[1], [0]], np.int32), x[:2], numbers)


def _scan(x):
    return lax.scan(lambda carry, y: (lax.max(carry, y), carry + y), x[0], x)


def _while(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (jnp.int32(0), x))[
        1
    ]


# For operands with the values 0, 1 and 2 all results are exact, in any order of computation.
_ON_ARRAYS = {
    "argmax": lambda x: lax.argmax(x, 1, np.int32),
    "argmin": lambda x: lax.argmin(x, 0, np.int64),
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (2, *x.shape), (1, 2)),
    "clamp": lambda x: lax.clamp(x[0, 0], x, x[1, 1]),
    "concatenate": lambda x: lax.concatenate([x, x], 1),
    "cond": lambda x: lax.cond(jnp.sum(x[0].astype(np.int32)) > 1, lambda y: y + y, lax.neg, x),
    "conv_general_dilated": lambda x: lax.conv(
        x[None, None], x[None, None, :2, :2], (1, 1), "SAME"
    ),
    "copy": lambda x: jnp.array(x, copy=True),
    "cummax": lax.cummax,
    "cumprod": lax.cumprod,
    "cumsum": lax.cumsum,
    "dot_general": _dot,
    "dynamic_slice": lambda x: lax.dynamic_slice(x, [np.int32(1), np.int32(2)], (2, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1, :2], [1, 1]),
    "gather": _gather("clip"),
    "iota": lambda x: x + lax.broadcasted_iota(x.dtype, x.shape, 1),
    "pad": lambda x: lax.pad(x, x[0, 0], [(1, -1, 1), (0, 2, 0)]),
    "reduce": _rounded_steps,
    "reduce_max": lambda x: (lax.reduce_max(x, (0,)), lax.reduce_max(x[:0], (0,))),
    "reduce_min": lambda x: (lax.reduce_min(x, (0,)), lax.reduce_min(x[:0], (0,))),
    "reduce_prod": lambda x: lax.reduce_prod(x, (0,)),
    "reduce_sum": lambda x: lax.reduce_sum(x, (0,)),
    "reduce_window_sum": _window_sum,
    "reshape": lambda x: lax.reshape(x, x.shape[::-1]),
    "rev": lambda x: lax.rev(x, (1,)),
    "scan": _scan,
    "scatter": _scatter(lax.scatter),
    "scatter-add": _scatter(lax.scatter_add),
    "scatter-max": _scatter(lax.scatter_max),
    "select_n": lambda x: lax.select(x == x[0, 0], x, lax.neg(x)),
    "slice": lambda x: lax.slice(x, (0, 1), (3, 4), (1, 2)),
    "sort": lambda x: lax.sort([x, lax.rev(x, (0,))], dimension=1, num_keys=1),
    "squeeze": lambda x: lax.squeeze(x[:1], (0,)),
    "transpose": lambda x: lax.transpose(x, (1, 0)),
    "while": _while,
}


# The axes that may be symbolic, where these are not all of them.
_AXES = {
    "dynamic_slice": axes(),
    "slice": axes(),
    "scatter": axes(1),
    "scatter-add": axes(1),
    "scatter-max": axes(1),
}

# A format with infinities, one with NaN but without infinities, and one with neither; and the
# primitives for which that makes a difference.
_FORMATS = (ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float4_e2m1fn)
_OF_FORMAT = ("reduce_max", "reduce_min", "dot_general")


@harnesses
@symbolic(every_axis)
def on_arrays():
    x = np.array([[1, 0, 2, 1], [0, 2, 1, 1], [1, 1, 0, 2]])
    for dtype in (*MAIN, *_FORMATS):
        args = (x.astype(_wide(dtype)),)
        for primitive, fun in _ON_ARRAYS.items():
            if dtype in (MAIN_FLOAT[0], MAIN_INTEGER[0]) or primitive in _OF_FORMAT:
                case = f"arrays_{name(dtype)}"
                rule = _AXES.get(primitive, every_axis)
                yield Harness(
                    primitive, case, _in_dtype(fun, dtype), args, dtype=dtype, symbolic=rule
                )
        fun = _in_dtype(_gather("fill"), dtype)
        yield Harness("gather", f"fill_{name(dtype)}", fun, args, dtype=dtype)


@harnesses
@symbolic(every_axis)
def ordered():
    """Yields harnesses of sort and top_k, with NaN, infinities and zeros of both signs."""
    for dtype in (*MAIN_FLOAT, *OTHER_FLOAT, *MAIN_INTEGER):
        x = np.random.default_rng(0).permutation(_special_values(dtype))
        yield Harness(
            "sort", f"specials_{name(dtype)}", _in_dtype(lax.sort, dtype), (x,), dtype=dtype
        )
        if dtype in (*MAIN_FLOAT, ml_dtypes.float8_e4m3fnuz):
            fun = _in_dtype(lambda x: lax.top_k(x, 5), dtype)
            case = f"specials_{name(dtype)}"
            yield Harness("top_k", case, fun, (x,), dtype=dtype, symbolic=axes())


@harnesses
@symbolic(every_axis)
def contractions():
    """Yields harnesses of dot_general with accumulation in a wider dtype."""
    x = np.array([[1, 0, 2, 1], [0, 2, 1, 1], [1, 1, 0, 2]], np.float32)
    for dtype in (*MAIN_FLOAT, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e3m4):
        for preferred in (np.float32, ml_dtypes.bfloat16):
            fun = _in_dtype(functools.partial(_dot, preferred=preferred), dtype)
            case = f"preferred={name(preferred)}_{name(dtype)}"
            yield Harness("dot_general", case, fun, (x,), dtype=dtype)

    def mixed(x, y):
        x = x.astype(ml_dtypes.float8_e4m3fn)
        y = y.astype(ml_dtypes.float8_e5m2)
        contract = (((1,), (1,)), ((), ()))
        return lax.dot_general(x, y, contract, preferred_element_type=np.float32)

    yield Harness("dot_general", "float8_e4m3fn_float8_e5m2", mixed, (x, x))


@harnesses
def scaled():
    """Yields harnesses of scaled_dot with narrow blocks and scales, as in the OCP formats."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 64)).astype(np.float32)
    scales = np.exp2(rng.integers(-3, 3, (2, 3, 2))).astype(np.float32)
    for dtype, scale_dtype in (
        (ml_dtypes.float8_e4m3fn, E8M0),
        (ml_dtypes.float8_e5m2, E8M0),
        (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn),
    ):

        def fun(x, scales, dtype=dtype, scale_dtype=scale_dtype):
            x, scales = x.astype(dtype), scales.astype(scale_dtype)
            return lax.scaled_dot(
                x,
                x,
                lhs_scale=scales,
                rhs_scale=scales,
                dimension_numbers=(((2,), (2,)), ((0,), (0,))),
                preferred_element_type=np.float32,
            )

        # Sums, in any order, of 64 products with absolute values up to 1000.
        comparer = close(atol=64 * 1000 * 2.0**-24)
        axes = ("b, m, _",) * 2
        yield Harness("scaled_dot", name(dtype), fun, (x, scales), comparer, dtype, symbolic=axes)


@harnesses
def known():
    """Yields harnesses with a constant of a narrow dtype, which is folded."""
    for dtype in (MAIN_FLOAT[0], OTHER_FLOAT[0], E8M0, *MAIN_INTEGER):
        value = np.array([1, 2, 1]).astype(dtype)

        def fun(x, value=value):
            return _widened(lax.mul(lax.convert_element_type(x, value.dtype), jnp.asarray(value)))

        args = (np.array([1, 0.5, 2] if _is_float(dtype) else [1, 0, 1], _wide(dtype)),)
        yield Harness("mul", f"constant_{name(dtype)}", fun, args, dtype=dtype)


@harnesses
def scatter_apply_narrow():
    """Yields harnesses with a function of scalars, which is mapped over the updates."""
    x, i = np.array([-2, 0, 1, 3], np.float32), np.array([0, 3, 3, 9], np.int32)
    for dtype in MAIN_FLOAT:
        fun = _in_dtype(lambda x: x.at[i].apply(lambda y: 2 * y + 1), dtype)
        yield Harness("scatter", f"apply_{name(dtype)}", fun, (x,), dtype=dtype)
