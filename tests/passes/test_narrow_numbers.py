"""Narrow numbers are promoted, jaxpr in and jaxpr out."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from lowering.arrays import narrow_numbers
from lowering.narrow_formats import NARROW, SHORT
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.narrow_numbers import promote_narrow
from lowering.passes.pipeline import whole_program
from lowering.targets import ONNX, TF, TFJS, TFLITE, XLA
from tests.passes.meanings import assert_means
from tests.passes.programs import counts, equation, primitives, traced

X = np.linspace(-9, 9, 8).astype(np.float32)
FLOAT8, INT4, UINT4 = ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4


def is_legal(jaxpr, target):
    variables = [*jaxpr.invars, *jaxpr.outvars]
    for eqn in jaxpr.eqns:
        # A large constant alone keeps its dtype.
        variables += [*eqn.outvars, *(eqn.invars if eqn.primitive.name != "widen" else ())]
    inner = (called for eqn in jaxpr.eqns for called in called_jaxprs(eqn))
    emulated = NARROW + tuple(filter(target.emulates, SHORT))
    return not any(var.aval.dtype in emulated for var in variables) and all(
        is_legal(called, target) for called in inner
    )


def promoted(fun, *args, target=TF):
    after = promote_narrow(traced(fun, *args), target)
    assert is_legal(after, target)
    return after


def test_a_program_without_narrow_numbers_stays_the_same():
    jaxpr = traced(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x), X)
    assert promote_narrow(jaxpr, TF) is jaxpr


@pytest.mark.parametrize(
    ("dtype", "target", "storage"),
    [
        (FLOAT8, TF, "float32"),
        (INT4, XLA, "int8"),
        (UINT4, TF, "uint8"),
        (INT4, TFLITE, "int32"),
        (UINT4, TFLITE, "int32"),
    ],
)
def test_arguments_and_results_are_in_the_storage_dtype_of_the_target(dtype, target, storage):
    after = promoted(lambda x: x + x, X.astype(dtype), target=target)
    assert [x.aval.dtype for x in (*after.jaxpr.invars, *after.jaxpr.outvars)] == [storage] * 2
    assert primitives(after) == ["add", "fit"]
    assert after.eqns[-1].params == {"dtype": dtype, "storage": storage}


def test_what_selects_is_not_made_to_fit():
    def fun(x):
        y = x.astype(FLOAT8)
        return lax.rev(lax.max(y, y[0]), (0,)).astype(np.float32)

    after = promoted(fun, X)
    assert counts(after)["fit"] == 1
    assert_means(after, fun, X)


@pytest.mark.parametrize(("dtype", "storage"), [(INT4, "int8"), (FLOAT8, "float32")])
def test_loops_and_branches_carry_storage_dtypes(dtype, storage):
    def fun(x):
        def step(carry, y):
            return lax.cond(carry[0] > 1, lambda c: c + y, lambda c: c * y, carry), y * y

        results = lax.scan(step, x.astype(dtype)[:2], x.astype(dtype))
        return [y.astype(np.float32) for y in results]

    loop = equation(promoted(fun, X), "scan")
    assert {x.aval.dtype for x in (*loop.invars, *loop.outvars)} == {np.dtype(storage)}
    branches = equation(loop.params["jaxpr"], "cond").params["branches"]
    assert [primitives(branch) for branch in branches] == [["mul", "fit"], ["add", "fit"]]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.bitcast_convert_type(x, ml_dtypes.uint4),
        lambda x: lax.shift_right_logical(x, jnp.ones_like(x)),
        lambda x: lax.shift_right_arithmetic(x, jnp.ones_like(x)),
        lambda x: lax.population_count(x),
        lambda x: lax.clz(x),
        lambda x: lax.mulhi(x, x[::-1]),
        lambda x: jnp.sort(x),
        lambda x: jnp.take(x, np.array([1, 99]), mode="fill"),
        lambda x: jnp.max(x),
    ],
)
def test_what_primitives_say_themselves(fun):
    def in_int4(x):
        return fun(x.astype(INT4)).astype(np.int32)

    for target in (TF, ONNX):
        assert "unsplit" not in primitives(promoted(in_int4, X, target=target))


def test_a_computation_of_a_reduction():
    def fun(x):
        add, steps = lax.add, lambda a, b: a * b + a
        y = x.astype(FLOAT8)
        zero = np.zeros((), FLOAT8)
        results = (lax.reduce(y, zero, computation, (0,)) for computation in (add, steps))
        return [r.astype(np.float32) for r in results]

    after = promoted(fun, X)
    # Each step is rounded, but for those of a sum, which TensorFlow has an op for.
    assert primitives(equation(after, "reduce").params["jaxpr"]) == ["mul", "fit", "add", "fit"]
    assert counts(after)["fit"] == 3


def test_large_constants_stay_narrow_where_there_is_a_cast():
    w = jnp.ones((80, 80), FLOAT8)

    def fun(x):
        return x @ w.astype(np.float32)

    x = np.ones((2, 80), np.float32)
    assert primitives(promoted(fun, x))[0] == "widen"
    assert "widen" not in primitives(promoted(fun, x, target=TFLITE))
    assert_means(promoted(fun, x), fun, x)


BYTES = np.arange(-4, 4, dtype=np.int8)


@pytest.mark.parametrize("target", [TFLITE, TFJS])
@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_short_integers_are_promoted_for_targets_without_them(dtype, target):
    def fun(x):
        return x + x

    x = BYTES.astype(dtype)
    after = promoted(fun, x, target=target)
    assert [x.aval.dtype for x in (*after.jaxpr.invars, *after.jaxpr.outvars)] == ["int32"] * 2
    assert after.eqns[-1].params == {"dtype": dtype, "storage": "int32"}
    for other in (TF, ONNX):
        jaxpr = traced(fun, x)
        assert promote_narrow(jaxpr, other) is jaxpr


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x & 3 | x ^ 1,
        lambda x: ~x,
        lambda x: lax.rem(x, x),
        lambda x: lax.max(x, x[::-1]),
        lambda x: jnp.sign(x),
        lambda x: lax.sort(x),
        lambda x: lax.top_k(x, 2),
        lambda x: lax.reduce_max(x, (0,)),
        lambda x: lax.population_count((x > 0).astype(np.uint8)),
        lambda x: lax.shift_right_arithmetic(x, x),
        lambda x: lax.shift_right_logical((x > 0).astype(np.uint16), np.uint16(1)),
        lambda x: x.astype(np.int16),
        lambda x: (x > 0).astype(np.uint8),
        lambda x: jnp.take(x, np.array([1, 99]), mode="fill"),
    ],
)
def test_what_cannot_leave_the_range_is_not_wrapped_around(fun):
    after = promoted(fun, BYTES, target=TFLITE)
    assert not {"unsplit", "fit"} & set(primitives(after))


def test_conversions_of_short_integers():
    def fun(x):
        unsigned = x.astype(np.uint8)
        return x.astype(np.int16).astype(np.float32), unsigned.astype(np.int32)

    after = promoted(fun, BYTES, target=TFLITE)
    assert primitives(after) == ["fit", "convert_element_type", "convert_element_type"]
    assert_means(after, lambda x: fun(x.astype(np.int8)), BYTES.astype(np.int32))


def test_random_bits_are_drawn_in_the_storage_dtype():
    def fun(words):
        return jax.random.bits(jax.random.wrap_key_data(words), (3,), np.uint8)

    jaxpr, _ = whole_program(traced(fun, np.uint32([1, 2])), TFLITE)
    assert primitives(jaxpr) == ["random_of_parts"]
    assert jaxpr.out_avals[0].dtype == np.int32


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.bitcast_convert_type(x.reshape(-1, 2), np.int16),
        lambda x: lax.bitcast_convert_type(x.reshape(-1, 2), jnp.bfloat16).astype(np.float32),
        lambda x: lax.bitcast_convert_type(x.astype(jnp.float16), np.uint8),
        lambda x: lax.bitcast_convert_type(x, ml_dtypes.uint4).astype(np.int8),
        lambda x: lax.bitcast_convert_type(x.astype(INT4).reshape(-1, 2), np.uint8),
        lambda x: lax.mulhi(x, x),
        lambda x: lax.dot(x, x, preferred_element_type=np.int32),
        lambda x: lax.clz(x),
        lambda x: lax.associative_scan(jnp.add, x),
        lambda x: x.at[np.array([1, 1])].add(x[:2]),
    ],
)
def test_what_primitives_say_of_short_integers(fun):
    for target in (TFLITE, TFJS):
        assert "unsplit" not in primitives(promoted(fun, BYTES, target=target))


def test_products_of_bytes_are_in_float32():
    def fun(x):
        return lax.dot(x, x, preferred_element_type=np.int32)

    product = equation(promoted(fun, BYTES, target=TFLITE), "dot_general")
    assert {x.aval.dtype for x in product.invars} == {np.dtype(np.float32)}


def test_sums_over_windows_wrap_around_once():
    def fun(x):
        return lax.reduce_window(x, np.int8(0), lax.add, (4,), (1,), "VALID")

    after = promoted(fun, BYTES, target=TFLITE)
    assert primitives(after) == ["reduce_window_sum", "fit"]


@pytest.mark.parametrize(("padding", "clips"), [((3, 3), False), ((4, 0), True), ((0, 4), True)])
def test_the_maximum_of_padding_alone_is_in_range(padding, clips):
    def fun(x):
        return lax.reduce_window(x, np.int8(-128), lax.max, (4,), (1,), [padding])

    after = promoted(fun, BYTES, target=TFLITE)
    assert primitives(after) == ["reduce_window_max", *["max", "min"] * clips]
    wide = fun(BYTES).astype(np.int32)
    assert wide.min() == (-128 if clips else BYTES.min())


@pytest.mark.parametrize(
    ("dtype", "given"), [(INT4, np.int8), (UINT4, np.uint8), (FLOAT8, np.float32)]
)
@pytest.mark.parametrize("target", [TF, ONNX, TFLITE], ids=lambda t: t.name)
def test_numbers_that_are_stored_already_are_not_made_to_fit(dtype, given, target):
    stored = np.arange(8).astype(given)
    after = promoted(lambda x: narrow_numbers.as_stored(x, np.dtype(dtype)), stored, target=target)
    assert "fit" not in primitives(after)
    assert after.out_avals[0].dtype == target.storage[np.dtype(dtype).name]
