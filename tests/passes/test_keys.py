"""Keys become their data, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import jax_compat
from lowering.avals import is_key
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.keys import RANDOM, split_keys
from lowering.targets import ONNX, TF
from tests.passes.programs import equation, primitives, traced

KEY = jax.random.key(3)
KEYS = jax.random.split(KEY, 3)
RBG = jax.random.split(jax.random.key(3, impl="rbg"), 3)
X = np.ones((2, 3), np.float32)


def has_keys(jaxpr):
    variables = [*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars]
    for eqn in jaxpr.eqns:
        variables += [*eqn.invars, *eqn.outvars]
    inner = (called for eqn in jaxpr.eqns for called in called_jaxprs(eqn))
    return any(is_key(var.aval.dtype) for var in variables) or any(map(has_keys, inner))


def split(fun, *args, target=TF):
    after = split_keys(traced(fun, *args), target)
    assert not has_keys(after)
    return after


def test_a_program_without_keys_stays_the_same():
    jaxpr = traced(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x), X)
    assert split_keys(jaxpr, TF) is jaxpr


def test_arguments_results_and_constants_are_key_data():
    after = split(lambda key: (key, KEYS), KEY)
    assert [var.aval.str_short() for var in after.jaxpr.invars] == ["uint32[2]"]
    assert [var.aval.str_short() for var in after.jaxpr.outvars] == ["uint32[2]", "uint32[3,2]"]
    np.testing.assert_array_equal(after.consts[0], jax.random.key_data(KEYS))


def test_key_data_is_wrapped_and_unwrapped_by_nothing():
    after = split(lambda w: jax.random.key_data(jax.random.wrap_key_data(w)), np.uint32([1, 2]))
    assert not after.eqns and after.jaxpr.outvars == after.jaxpr.invars


def test_what_draws_is_one_equation_on_key_data():
    after = split(lambda key: jax.random.bits(jax.random.fold_in(key, 3), (5,)), KEY)
    assert [eqn.primitive for eqn in after.eqns] == [RANDOM] * 2
    assert [eqn.params["name"] for eqn in after.eqns] == ["random_fold_in", "random_bits"]


@pytest.mark.parametrize(
    ("keys", "target", "expected"),
    [
        (KEYS, TF, ["bitcast_convert_type", "rev", "squeeze", "bitcast_convert_type"]),
        (KEYS, ONNX, ["unstack", "rev", "rev", "squeeze", "squeeze", "stack"]),
        (
            RBG,
            TF,
            ["reshape", "bitcast_convert_type", "unstack", "rev", "rev", "squeeze", "squeeze"]
            + ["bitcast_convert_type"] * 2
            + ["concatenate"],
        ),
    ],
)
def test_moves_are_of_integers_from_one_to_the_next(keys, target, expected):
    after = split(lambda keys: lax.squeeze(lax.rev(keys[:1], [0]), [0]), keys, target=target)
    assert [name for name in primitives(after) if name != "slice"] == expected


def test_loops_and_branches_carry_key_data():
    def fun(key, x):
        def step(key, row):
            key, other = jax.random.split(key)
            return key, row + jax.random.normal(other, row.shape)

        key, _ = lax.scan(step, key, x)
        return lax.cond(x[0, 0] > 0, lambda key: key, lambda key: jax.random.fold_in(key, 1), key)

    after = split(fun, KEY, X)
    scan = equation(after, "scan")
    assert jax_compat.scan_counts(scan.params) == (0, 1)
    assert scan.invars[0].aval.str_short() == "uint32[2]"
    assert equation(after, "cond").outvars[0].aval.str_short() == "uint32[2]"


def test_comparisons_are_of_all_key_data():
    after = split(lambda keys: (keys == keys[::-1], keys != keys), KEYS)
    assert {"eq", "reduce_and", "ne", "reduce_or"} <= set(primitives(after))
    data = jax.random.key_data(KEYS).at[2].set(jax.random.key_data(KEYS)[0])
    with jax.enable_x64(True):
        same, different = jex_core.jaxpr_as_fun(after)(data)
    np.testing.assert_array_equal(same, [True, True, True])
    np.testing.assert_array_equal(different, [False] * 3)


def test_equations_have_the_line_of_the_user():
    after = split(lambda keys: jax.random.split(keys[0]), KEYS)
    assert all("test_keys.py" in jax_compat.source_line(eqn) for eqn in after.eqns)
