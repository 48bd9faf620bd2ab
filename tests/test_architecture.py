"""The examples of the page on the architecture do what it says."""

import collections
import itertools
from unittest import mock

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import registry
from lowering.passes import pipeline
from lowering.passes.fusion import exact
from lowering.passes.fusion.patterns import fuse
from lowering.targets import Mode
from tests.helpers import MODES, ROOT, code_blocks, graph_of, in_mode, op_counts
from tests.passes import test_bitcast_uint32, test_fusion, test_patterns


@pytest.fixture
def blocks() -> list[str]:
    """The code blocks of the page, in order."""
    return code_blocks(ROOT / "g3doc/architecture.md")


@pytest.fixture
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    rules = {key: list(value) for key, value in registry._RULES.items()}
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list, rules))
    monkeypatch.setattr(
        registry, "_FACTS", collections.defaultdict(registry.Facts, registry._FACTS)
    )


@pytest.fixture
def pattern_of_the_page(blocks, own_registry, monkeypatch):
    """Registers the pattern and the rule of the page."""
    program, pattern, rule, *_ = blocks
    monkeypatch.setattr(registry, "_OURS", dict(registry._OURS))
    exec(rule, {})
    scope = dict(vars(exact))
    exec(program, scope)
    patterns = (*exact.PATTERNS, eval(pattern, scope))
    added = pipeline.Pass("fuse ops of the page", lambda jaxpr: fuse(jaxpr, patterns, {}))
    pipeline.forget()
    with mock.patch.object(pipeline, "PASSES", (*pipeline.PASSES, added)):
        yield patterns
    pipeline.forget()


def test_the_pattern_is_found(blocks, pattern_of_the_page):
    scope = {**vars(test_patterns), "PATTERNS": pattern_of_the_page}
    exec(blocks[3], scope)
    scope["test_safe_quotient"]()


@pytest.mark.parametrize("mode", MODES)
def test_the_case_of_the_pattern(blocks, pattern_of_the_page, mode):
    ((fun, args, counts),) = eval(blocks[4], dict(vars(test_fusion))).values()
    actual = in_mode(lowering.convert(fun), mode)(*map(tf.constant, args))
    np.testing.assert_allclose(actual, jax.jit(fun)(*args), rtol=1e-6)
    graph = graph_of(fun, *args)
    assert {op: op_counts(graph)[op] for op in counts} == counts


def test_the_legalization(blocks, own_registry):
    """The test of the page fails without the legalization of the page."""
    legalization, test = blocks[5:7]
    scope = dict(vars(test_bitcast_uint32))
    exec(test, scope)
    registry._RULES["clamp", "consumer"].clear()
    with pytest.raises(AssertionError):
        scope["test_clamp_is_in_the_order_of_uint32"]()
    exec(legalization, {})
    scope["test_clamp_is_in_the_order_of_uint32"]()


def _kind(each):
    """What the page says a pass is for."""
    kinds = {
        "all": lambda mode, target: True,
        "graphs": lambda mode, target: mode is not Mode.EAGER,
        "natural targets": lambda mode, target: target.is_natural,
        "natural targets, graphs": lambda mode, target: (
            target.is_natural and mode is not Mode.EAGER
        ),
        "runtimes": lambda mode, target: target.is_consumer,
        "TF Lite": lambda mode, target: target == lowering.targets.TFLITE,
        "TF.js": lambda mode, target: target == lowering.targets.TFJS,
        "TF Lite, TF.js": lambda mode, target: (
            target in (lowering.targets.TFLITE, lowering.targets.TFJS)
        ),
    }
    cases = list(itertools.product(Mode, lowering.targets.TARGETS.values()))
    (kind,) = (k for k, of in kinds.items() if all(of(*c) == each.when(*c) for c in cases))
    return f"{kind}, needed" if each.is_required else kind


def test_the_passes():
    text = (ROOT / "g3doc/architecture.md").read_text()
    section = text.partition("\n## Passes\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    listed = [(row[0].removeprefix("| "), row[1]) for row in rows if row[0] != "| pass"]
    passes = (*pipeline.WHOLE_PROGRAM, *pipeline.PASSES)
    assert listed == [(each.name, _kind(each)) for each in passes]
