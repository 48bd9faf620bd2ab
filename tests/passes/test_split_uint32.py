"""uint32 becomes its upper and lower 16 bits, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering.arrays import uint32_parts
from lowering.arrays.uint32 import UINT32
from lowering.arrays.uint32_parts import INT32
from lowering.passes import pipeline
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.keys import RANDOM_OF_PARTS, split_keys
from lowering.passes.legalize.split_uint32 import split_uint32
from lowering.passes.legalize.splitting import UNSPLIT
from lowering.targets import TFJS, TFLITE
from tests.passes.programs import primitives, traced

X = np.random.default_rng(0).integers(2**32, size=(3, 4), dtype=np.uint32)


def dtypes_of(jaxpr):
    """The dtypes of all variables of a jaxpr, and of those that are in it."""
    found = {x.aval.dtype for x in (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars)}
    for eqn in jaxpr.eqns:
        found |= {x.aval.dtype for x in (*eqn.invars, *eqn.outvars)}
        for called in called_jaxprs(eqn):
            found |= dtypes_of(called)
    return found


def split(fun, *args):
    after = inline_calls(split_uint32(traced(fun, *args), TFJS), frozenset())
    assert UINT32 not in dtypes_of(after)
    return after


def test_without_uint32_nothing_changes():
    jaxpr = traced(lambda x: x + 1, np.float32(1))
    assert split_uint32(jaxpr, TFJS) is jaxpr


def test_only_targets_that_split_uint32_have_the_pass():
    jaxpr = traced(lambda x: x + x, X)
    assert [x.dtype for x in pipeline.whole_program(jaxpr, TFLITE)[0].in_avals] == [INT32]
    assert [x.dtype for x in pipeline.whole_program(jaxpr, TFJS)[0].in_avals] == [INT32, INT32]


def test_moves_are_of_each_half():
    after = split(lambda x: x.T.reshape(2, 6), X)
    assert primitives(after).count("transpose") == primitives(after).count("reshape") == 2
    results = jax.core.eval_jaxpr(after.jaxpr, after.consts, *split_array(X))
    for expected, actual in zip(split_array(X.T.reshape(2, 6)), results, strict=True):
        np.testing.assert_array_equal(actual, expected)


def split_array(x):
    return (x >> 16).astype(np.int32), (x & 0xFFFF).astype(np.int32)


def test_arithmetic_is_one_equation():
    assert primitives(split(lambda x, y: (x + y) ^ x, X, X)) == ["add_of_parts", "xor_of_parts"]


def test_known_numbers_have_known_parts():
    (eqn,) = split(lambda x: x * np.uint32(0x10002), X).eqns
    assert [x.val for x in eqn.invars[2:]] == [1, 2]


def test_constants_are_split():
    after = split(lambda x: x + np.asarray(X), X)
    assert [x.dtype for x in after.consts] == [INT32, INT32]


def test_joined_parts_are_not_split_again():
    def fun(x):
        bits = lax.bitcast_convert_type(x, np.int32)
        return bits + 1, lax.bitcast_convert_type(bits, np.uint32) + x

    assert uint32_parts.OF_INT32.name not in primitives(split(fun, X))


def test_loops_carry_parts():
    after = split(lambda x: lax.fori_loop(0, 3, lambda _, y: y * x + y, x), X)
    (loop,) = (eqn for eqn in after.eqns if eqn.primitive.name in ("while", "scan"))
    assert sum(x.aval.dtype == INT32 and x.aval.shape == X.shape for x in loop.outvars) == 2


def test_indices_of_uint32_become_int32():
    after = split(lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False), X, np.uint32(2))
    names = primitives(after)
    assert names.count("dynamic_slice") == 2 and UNSPLIT.name not in names


def test_other_primitives_are_of_the_bits():
    names = primitives(split(lambda x: x.at[jnp.array([0, 0])].add(x[:2]), X))
    assert (
        "scatter-add" in names and uint32_parts.TO_INT32.name in names and UNSPLIT.name not in names
    )


@pytest.mark.parametrize("dtype", ["uint32", "uint8"])
def test_random_bits_are_one_equation(dtype):
    jaxpr = split_keys(
        traced(lambda key: jax.random.bits(key, (5,), dtype), jax.random.key(0)), TFJS
    )
    after = split_uint32(jaxpr, TFJS)
    eqns = [eqn for eqn in after.eqns if eqn.primitive is RANDOM_OF_PARTS]
    assert len(eqns) == 1 and len(eqns[0].outvars) == (2 if dtype == "uint32" else 1)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_seeds_may_be_short(dtype):
    jaxpr = traced(lambda seed: jax.random.key_data(jax.random.key(seed)), np.array(3, dtype))
    after, _ = pipeline.whole_program(jaxpr, TFJS)
    assert len(after.jaxpr.outvars) == 2


def test_split_programs_are_evaluated_by_targets_that_do_not_split():
    """Loops over known numbers run on TensorFlow, as `portable`, when a program is exported."""

    def fun(x):
        key = jax.random.fold_in(jax.random.key(0), 7)
        return x + jax.random.bits(key, x.shape)

    after = split_uint32(split_keys(traced(fun, X), TFJS), TFJS)
    halved = lowering.convert(jex_core.jaxpr_as_fun(after), target="portable")
    parts = (X >> 16).astype(INT32), (X & 0xFFFF).astype(INT32)
    high, low = (np.asarray(part).astype(UINT32) for part in halved(*parts))
    np.testing.assert_array_equal(high << 16 | low, jax.jit(fun)(X))
