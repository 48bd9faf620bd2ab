"""Variants of harnesses are what JAX makes of them, and a sweep takes a part of them."""

import collections

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.interpreters import ad, batching, mlir

from harnesses import cell, compare
from harnesses.arguments import random
from harnesses.cell import Outcome, Verdict
from harnesses.harness import Harness, all_harnesses
from harnesses.selection import Selection
from harnesses.variants import PLAIN, SETTINGS, VARIANTS
from lowering.registry import rule

X = np.array([0.5, -1.25, 2.0], np.float32)
TRANSFORMS = ["vmap", "symbolic batch", "symbolic axes", "jvp", "vjp", "gradient"]


wrong_sin = jex_core.Primitive("wrong_sin")
wrong_sin.def_abstract_eval(lambda x: x)
mlir.register_lowering(wrong_sin, mlir.lower_fun(jnp.sin, multiple_results=False))
ad.defjvp(wrong_sin, lambda tangent, x: tangent * wrong_sin.bind(x))
batching.defvectorized(wrong_sin)


@rule("wrong_sin")
def _wrong_sin(ctx, x):
    return tf.sin(x) * 1.001


def results(harness, variant):
    targets = ("onnx",) if cell.RUNTIME in VARIANTS[variant].modes else ("tf",)
    cells = cell.cells_of(harness, targets=targets, variant=variant)
    assert cells
    return list(cell.run(harness, cells))


def close(name, fun, *args, **fields):
    return Harness(name, "case", fun, args, compare.close(), **fields)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v != "NaN raises"])
def test_variants_of_a_harness_that_is_right(variant):
    harness = close(
        "sin",
        lambda x, y, n: (jnp.sin(x) * y, x.sum() + n),
        X,
        random((3,), np.float32),
        2,
        symbolic=("b", "b"),
    )
    for result in results(harness, variant):
        assert result.verdict == Verdict.EQUAL, result


def test_derivatives_of_complex_numbers():
    harness = close("mul", lambda z: z * z * (2 + 1j), (X + 1j).astype(np.complex64))
    for variant in ("jvp", "vjp", "gradient"):
        for result in results(harness, variant):
            assert result.verdict == Verdict.EQUAL, result


@pytest.mark.parametrize("variant", [PLAIN, *TRANSFORMS])
def test_variants_of_a_harness_that_is_wrong(variant):
    harness = close("wrong_sin", wrong_sin.bind, X, symbolic=("b",))
    for result in results(harness, variant):
        assert (result.outcome, result.verdict) == (Outcome.DIFFERENT, Verdict.UNEXPECTED), result


def test_there_is_no_variant_where_jax_has_none():
    forward_only = close("while", lambda x: jax.lax.while_loop(jnp.any, lambda c: c - c, x), X)
    for variant, verdict in (("jvp", Verdict.EQUAL), ("vjp", Verdict.NO_VARIANT)):
        for result in results(forward_only, variant):
            assert result.verdict == verdict, result


def test_operands_by_which_jax_can_differentiate():
    harness = close("zeta", jax.scipy.special.zeta, 2 + abs(X), 1 + abs(X))
    for result in results(harness, "jvp"):
        assert result.verdict == Verdict.EQUAL, result


def test_settings_hold_while_a_cell_is_run():
    def names_the_dtype(x):
        return x.astype(jnp.float64)

    (result,) = results(close("convert_element_type", names_the_dtype, X), "32 bits")
    assert result.verdict == Verdict.EQUAL, result


@pytest.mark.parametrize(("dtype", "outcome"), [(np.float32, "different"), (np.float64, "equal")])
def test_only_numbers_that_become_narrower_are_compared_with_the_largest(dtype, outcome):
    def beside_a_large_number(x):
        return jnp.where(x > 1, 1e9, wrong_sin.bind(x)).astype(dtype)

    (result,) = results(close("wrong_sin", beside_a_large_number, X.astype(dtype)), "32 bits")
    assert result.outcome == outcome


@pytest.fixture(scope="module")
def catalogue():
    with jax.enable_x64(True):
        return all_harnesses()


def taken(catalogue, turn, **filters):
    with jax.enable_x64(True):
        cells = Selection(**filters).cells(catalogue, turn)
    return {(name, c.variant) for name, of_harness in cells.items() for c in of_harness}


def test_a_part_has_each_primitive_dtype_and_kind(catalogue):
    part = taken(catalogue, "turn 1")
    everything = taken(catalogue, "turn 1", share="all")
    assert part <= everything | {(name, v) for name in catalogue for v in SETTINGS}

    def groups(pairs, kinds):
        found = collections.defaultdict(set)
        for name, variant in pairs:
            if variant in kinds:
                harness = catalogue[name]
                found[variant] |= {harness.primitive, f"dtype {harness.dtype_name}"}
        return found

    assert groups(part, TRANSFORMS) == groups(everything, TRANSFORMS)
    under_settings = {catalogue[name].primitive for name, v in part if v in SETTINGS}
    assert under_settings == {harness.primitive for harness in catalogue.values()}
    assert {v for _, v in part} == {v for _, v in everything}


def test_all_variants_have_each_primitive_under_each_setting(catalogue):
    everything = taken(catalogue, "", share="all")
    for setting in SETTINGS:
        under = {catalogue[name].primitive for name, v in everything if v == setting}
        assert under == {harness.primitive for harness in catalogue.values()}


def test_parts_turn(catalogue):
    first, again, second = (taken(catalogue, turn) for turn in ("1", "1", "2"))
    assert first == again
    assert len(first - second) > len(first) / 20


def test_plain_harnesses_alone(catalogue):
    assert {v for _, v in taken(catalogue, "", share="none")} == {PLAIN}
