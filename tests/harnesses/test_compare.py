"""How results of cells are compared, and what a limitation tolerates instead."""

import ml_dtypes
import numpy as np
import pytest

from harnesses import cell, compare
from harnesses.cell import Cell, Outcome, Verdict
from harnesses.harness import Harness
from limitations import Limitation, Looser

NAN = np.float32([1, np.nan])


def test_every_looser_comparison_has_a_comparer():
    assert set(compare.LOOSER) == set(Looser)


@pytest.mark.parametrize(
    ("actual", "outcome", "verdict"),
    [
        ([NAN], Outcome.EQUAL, Verdict.STALE),
        ([np.float32([np.nan, np.nan])], Outcome.DIFFERENT, Verdict.LIMITED),
        ([np.float32([2, np.inf])], Outcome.DIFFERENT, Verdict.LIMITED),
        ([np.float32([1, 2])], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        ([np.float64([np.nan, np.nan])], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        ([NAN, NAN], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        (None, Outcome.TF_ERROR, Verdict.UNEXPECTED),
    ],
)
def test_a_looser_limitation_is_strict(actual, outcome, verdict, monkeypatch):
    limitation = Limitation("A NaN spreads.", looser=Looser.NAN_REACHES)
    monkeypatch.setattr(cell, "limitations_of", lambda primitive: (limitation,))
    harness = Harness("sin", "case", np.sin, (NAN,))
    values = ([NAN], actual, [NAN])
    result = cell.judge(harness, Cell(harness.name, "eager", "tf"), outcome, values=values)
    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("actual", "is_equal"),
    [
        ([-np.inf, 1, np.inf], True),
        ([-65504, 1, 65504], True),
        ([-65504, 2, np.inf], False),
        ([65504, 1, np.inf], False),
        ([-np.inf, 65504, np.inf], False),
        ([np.nan, 1, np.inf], False),
    ],
)
def test_finite_for_infinite(actual, is_equal):
    expected = np.float16([-np.inf, 1, np.inf])
    assert compare.finite_for_infinite([expected], [np.float16(actual)], []).equal == is_equal


@pytest.mark.parametrize(
    ("arg", "expected", "actual", "is_equal"),
    [
        (88.0, 2e38, np.inf, True),
        (60.0, 1e26, 1.00001e26, True),
        (60.0, 1e26, 1.0001e26, False),
        (1e20, 1.0, 5.0, True),
        (-1.0, 0.36, np.inf, False),
    ],
)
def test_moderate_results(arg, expected, actual, is_equal):
    comparer = compare.LOOSER[Looser.MODERATE_RESULTS]
    arrays = ([np.float32([number])] for number in (expected, actual, arg))
    assert comparer(*arrays).equal == is_equal


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.complex64])
def test_infinite_results_are_not_moderate(dtype):
    comparer = compare.LOOSER[Looser.MODERATE_RESULTS]
    arrays = [np.array([np.inf, 2], dtype)], [np.array([3, 2], dtype)], [np.array([1, 2], dtype)]
    assert comparer(*arrays).equal


def test_subnormal_results_may_be_zero():
    comparer = compare.LOOSER[Looser.MODERATE_RESULTS]
    zero, subnormal, normal = (np.float16([x]) for x in (0, 1.5e-5, 1e-3))
    arg = np.float16([9.2])
    assert comparer([zero], [subnormal], [arg]).equal
    assert not comparer([zero], [normal], [arg]).equal


def test_signed_tells_zeros_apart():
    comparer = compare.signed(compare.close(ulps=8))
    x = np.float32([0.0, -0.0, 1.0])
    assert comparer([x], [x.copy()], []).equal
    comparison = comparer([x], [np.float32([0.0, 0.0, 1.0])], [])
    assert not comparison.equal and comparison.error == np.inf
    assert "result 0 at [1]" in comparison.message


def test_signed_looks_at_zeros_only():
    comparer = compare.signed(compare.close(ulps=0, atol=1.0))
    # One of the two is no zero, and both are NaN: the other comparer decides.
    zeros, others = np.float32([-0.0, 0.5, np.nan]), np.float32([0.5, -0.0, -np.nan])
    assert comparer([zeros], [others], []).equal
    assert not comparer([zeros], [others + np.float32(2)], []).equal
    integers = np.int32([0, 1])
    assert comparer([integers], [integers.copy()], []).equal
    assert not comparer([integers], [integers + 1], []).equal


@pytest.mark.parametrize("wrong", [complex(-0.0, 0.0), complex(0.0, -0.0)])
def test_signed_looks_at_both_parts_of_complex_zeros(wrong):
    comparer = compare.signed(compare.close())
    zero = np.zeros(2, np.complex64)
    assert comparer([zero], [zero.copy()], []).equal
    assert not comparer([zero], [np.array([0, wrong], np.complex64)], []).equal


def test_signed_looks_at_all_results():
    zero = np.zeros(1)
    assert not compare.signed(compare.close())([zero, zero], [zero, -zero], []).equal


_EPS = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize(
    ("expected", "actual", "term", "equal"),
    [
        (1.0, 1 + 8 * _EPS, 0.0, True),
        (1.0, 1 + 9 * _EPS, 0.0, False),
        # What is left of terms of 1000 may be off by their errors, not by more.
        (1.0, 1 + 7000 * _EPS, 1000.0, True),
        (1.0, 1 + 9000 * _EPS, 1000.0, False),
        (1.0, -1.0, 1e7, True),
        # Terms that overflow leave any number, but no NaN.
        (1.0, 1e30, np.inf, True),
        (np.inf, 1.0, np.inf, True),
        (1.0, np.nan, np.inf, False),
        (np.nan, 1.0, np.inf, False),
        (np.nan, np.nan, 1.0, True),
        (np.inf, np.inf, 1.0, True),
        (np.inf, -np.inf, 1.0, False),
        (np.inf, 1.0, 1.0, False),
        (0.0, 1e-38, 0.0, True),
        (0.0, 1e-37, 0.0, False),
    ],
)
def test_close_in_terms(expected, actual, term, equal):
    comparer = compare.close_in_terms(lambda args: args[0], ulps=8)
    results = [np.float32([x, 1]) for x in (expected, actual)]
    comparison = comparer(results[:1], results[1:], [np.array([term, 1.0])])
    assert comparison.equal == equal
    assert (comparison.error <= 1) == equal
    assert bool(comparison.message) != equal


def test_close_in_terms_takes_empty_arrays():
    empty = np.zeros(0, np.float32)
    assert compare.close_in_terms(lambda args: args[0])([empty], [empty], [empty]).equal


@pytest.mark.parametrize(
    ("expected", "actual", "ulps"),
    [
        (np.float32([1, 2]), np.float32([1, 2 + 2**-21]), 2),
        (np.float32([0]), np.float32([1e-45]), 1),
        (np.float64([1.7e308]), np.float64([1.7e308]), 0),
        (np.float32([np.nan, np.inf, -0.0]), np.float32([np.nan, np.inf, 0]), 0),
        (np.float32([1]), np.float32([np.nan]), np.inf),
        (np.float32([np.inf]), np.float32([1]), np.inf),
        (np.array([1.0, 448], ml_dtypes.float8_e4m3fn), np.array([1.125, 448.0]), 1),
        (np.complex64([2**20 + 1j]), np.complex64([2**20 + 1.125j]), 1),
        (np.complex64([complex(np.nan, 1)]), np.complex64([complex(1, np.nan)]), 0),
        (np.zeros((0, 2), np.float16), np.zeros((0, 2), np.float16), 0),
        (np.int32([1]), np.int32([2]), None),
        (np.array([True]), np.array([False]), None),
    ],
)
def test_the_worst_error_in_units_of_the_last_place(expected, actual, ulps):
    assert compare.worst_ulps([expected], [actual.astype(expected.dtype)]) == ulps
