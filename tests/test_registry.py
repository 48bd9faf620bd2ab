"""Which rule lowers a primitive: a target inherits rules, and some rules are for some dtypes."""

import collections
import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import registry
from lowering.ops import dtypes
from lowering.registry import Trait
from lowering.targets import TARGETS, TF, XLA


@pytest.fixture
def clean_registry(monkeypatch):
    """A registry without rules."""
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list))
    monkeypatch.setattr(registry, "_FACTS", collections.defaultdict(registry.Facts))


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
    """But for the primitives that passes introduce for natural targets."""
    for target in TARGETS.values():
        more = registry.primitives(target) - registry.primitives(TF)
        assert not more or target.is_natural
        assert more <= set(registry._OURS)


# Rules of users.


@pytest.fixture
def own_registry(monkeypatch):
    """The registry, which may be changed."""
    rules = {key: list(value) for key, value in registry._RULES.items()}
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list, rules))
    known = {name: dataclasses.replace(value) for name, value in registry._FACTS.items()}
    monkeypatch.setattr(registry, "_FACTS", collections.defaultdict(registry.Facts, known))


def test_a_second_rule_names_both(own_registry):
    with pytest.raises(ValueError, match=r"lowering\.rules\..* and .*replace=True"):
        lowering.rule("sort")(lambda ctx, *operands, **_: operands)


def test_an_unknown_target(own_registry):
    with pytest.raises(ValueError, match="unknown target 'coreml'"):
        lowering.rule("mine", target="coreml")(lambda ctx, x: x)


def test_a_rule_that_replaces_all_others(own_registry):
    """Those of targets that inherit it, and for some dtypes, too."""
    registry.rule("one", traits=Trait.ELEMENTWISE, fold=np.sin)(lambda ctx, x: "old")
    registry.rule("one", target=XLA)(lambda ctx, x: "old")
    registry.rule("one", dtypes=dtypes.BOOL)(lambda ctx, x: "old")
    mine = lowering.rule("one", replace=True)(lambda ctx, x: "new")
    for target in TARGETS.values():
        assert registry.lookup("one", target).fun is mine
        assert registry.lookup("one", target, np.dtype(bool)).fun is mine
    assert registry.facts("one") == registry.Facts()


def test_a_rule_that_replaces_others_for_a_target_or_some_dtypes(own_registry):
    old = registry.rule("one")(lambda ctx, x: "old")
    compiled = lowering.rule("one", target="xla", replace=True)(lambda ctx, x: "compiled")
    assert registry.lookup("one", TF).fun is old
    assert registry.lookup("one", XLA).fun is compiled
    logical = lowering.decomposition("one", dtypes=[bool], replace=True)(lambda x: x)
    for target in TARGETS.values():
        assert registry.lookup("one", target, np.dtype(bool)).fun is logical
    assert registry.lookup("one", XLA, np.dtype(np.int32)).fun is compiled


def test_a_replaced_rule_is_used(own_registry):
    lowering.rule("sin", replace=True)(lambda ctx, x, **_: tf.cos(x))
    x = np.float32([1, 2])
    np.testing.assert_allclose(lowering.convert(jnp.sin)(x), np.cos(x), rtol=1e-6)


def test_all_or_nothing(own_registry):
    before = registry.primitives()
    with pytest.raises(OSError), registry.all_or_nothing():
        registry.rule("sin", replace=True)(lambda ctx, x: x)
        registry.rule("one")(lambda ctx, x: x)
        raise OSError
    assert registry.primitives() == before
    assert registry.has_trait("sin", Trait.ELEMENTWISE)
    assert registry.lookup("sin", TF).fun.__module__.startswith("lowering.rules")


def test_a_name_is_given_to_one_primitive_of_ours():
    with pytest.raises(ValueError, match="a primitive of the name 'softmax' already"):
        registry.new_primitive("softmax")
