"""Every primitive that makes sense with a symbolic axis has a harness that says so."""

import collections
import dataclasses

import jax
import pytest

from harnesses import axes, variants
from harnesses.harness import all_harnesses

_NO_ARRAY = "its harnesses have no operand that is an array"

# Primitives without a harness that has symbolic axes, and why.
SILENT = {
    "axis_index": _NO_ARRAY,
    "empty": _NO_ARRAY,
    "empty2": _NO_ARRAY,
    "eval_jaxpr": "it runs a program that was traced for known shapes, and JAX does not check them",
    "iota_2x32_shape": _NO_ARRAY,
    "rng_uniform": _NO_ARRAY,
}

# How many harnesses of a primitive are tried.
_TRIED = 5


@pytest.fixture(scope="module")
def by_primitive():
    found = collections.defaultdict(list)
    with jax.enable_x64(True):
        for harness in all_harnesses().values():
            found[harness.primitive].append(harness)
        yield found


def has_symbolic_axes(harness):
    return variants.VARIANTS["symbolic axes"].applies(harness)


def can_be_traced(harness):
    try:
        variants.VARIANTS["symbolic axes"].trial(harness).trace()
    except Exception:  # JAX raises errors of many types.
        return False
    return True


def with_first_axis(harness):
    """A harness where the first axis of the first array is symbolic, or of all arrays."""
    position = next(
        (i for i, x in enumerate(harness.make_args()) if variants.is_array(x) and x.ndim), None
    )
    if position is not None:
        first = axes.axes_of(*[()] * position, (0,))
        for rule in (first, axes.axes(0)):
            yield dataclasses.replace(harness, symbolic=rule)


def test_primitives_have_symbolic_axes_if_jax_can_trace_them(by_primitive):
    silent = [p for p, members in by_primitive.items() if not any(map(has_symbolic_axes, members))]
    assert set(SILENT) & set(by_primitive) <= set(silent)
    for primitive in set(silent) - set(SILENT):
        for harness in by_primitive[primitive][:_TRIED]:
            for tried in filter(has_symbolic_axes, with_first_axis(harness)):
                assert not can_be_traced(tried), f"{primitive} can have a symbolic axis"


def test_jax_traces_what_harnesses_say(by_primitive):
    for members in by_primitive.values():
        harness = next(filter(has_symbolic_axes, members), None)
        assert harness is None or can_be_traced(harness), harness.name
