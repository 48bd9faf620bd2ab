"""Which rule lowers a primitive: a target inherits rules, and some rules are for some dtypes."""

import collections

import numpy as np
import pytest

from lowering import registry
from lowering.ops import dtypes
from lowering.targets import TARGETS, TF, XLA


@pytest.fixture
def clean_registry(monkeypatch):
    """A registry without rules."""
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list))


def test_a_target_inherits_rules_and_overrides_them(clean_registry):
    base = registry.rule("one", "two")(lambda ctx, x: "base")
    special = registry.rule("two", target=XLA)(lambda ctx, x: "special")
    assert registry.lookup("one", XLA).fun is base
    assert registry.lookup("two", XLA).fun is special
    assert registry.lookup("two", TF).fun is base
    assert registry.lookup("three", XLA) is None


def test_rules_for_some_dtypes_come_first(clean_registry):
    general = registry.rule("one")(lambda ctx, x: "general")
    for_complex = registry.decomposition("one", dtypes=dtypes.COMPLEX)(lambda x: x)
    found = registry.lookup("one", TF, np.dtype(np.complex64))
    assert found.fun is for_complex and found.is_decomposition
    assert registry.lookup("one", TF, np.dtype(np.float32)).fun is general
    assert registry.lookup("one", TF).fun is general


def test_a_rule_of_the_target_comes_before_one_of_its_parent_for_the_dtype(clean_registry):
    registry.rule("one", dtypes=dtypes.FLOAT)(lambda ctx, x: "float")
    special = registry.rule("one", target=XLA)(lambda ctx, x: "special")
    assert registry.lookup("one", XLA, np.dtype(np.float32)).fun is special


def test_a_rule_for_some_dtypes_alone_covers_no_others(clean_registry):
    registry.rule("one", dtypes=dtypes.BOOL)(lambda ctx, x: x)
    assert registry.lookup("one", TF, np.dtype(np.bool_)) is not None
    assert registry.lookup("one", TF, np.dtype(np.int8)) is None


def test_two_rules_for_the_same_are_refused(clean_registry):
    registry.rule("one")(lambda ctx, x: x)
    registry.rule("one", target=XLA)(lambda ctx, x: x)
    registry.rule("one", dtypes=dtypes.BOOL)(lambda ctx, x: x)
    with pytest.raises(ValueError, match="'one' has two rules for target 'tf'"):
        registry.decomposition("one")(lambda x: x)


def test_primitives_of_a_target(clean_registry):
    registry.rule("one")(lambda ctx, x: x)
    registry.rule("two", target=XLA)(lambda ctx, x: x)
    assert registry.primitives(TF) == {"one"}
    assert registry.primitives(XLA) == {"one", "two"}


def test_every_primitive_has_a_rule_on_the_base_target():
    assert registry.primitives(XLA) == registry.primitives(TF)


def test_no_target_lowers_what_the_base_does_not():
    assert all(registry.primitives(t) == registry.primitives(TF) for t in TARGETS.values())
