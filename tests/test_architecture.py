"""The examples of the page on the architecture do what it says."""

import collections
from unittest import mock

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import registry
from lowering.passes import fusion, pipeline
from tests.helpers import MODES, ROOT, code_blocks, graph_of, in_mode, op_counts
from tests.passes import test_fusion, test_patterns


@pytest.fixture
def blocks() -> list[str]:
    """The code blocks of the page, in order."""
    return code_blocks(ROOT / "g3doc/architecture.md")


@pytest.fixture
def pattern_of_the_page(blocks, monkeypatch):
    """Registers the pattern and the rule of the page."""
    program, pattern, rule, *_ = blocks
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list, registry._RULES))
    monkeypatch.setattr(
        registry, "_FACTS", collections.defaultdict(registry.Facts, registry._FACTS)
    )
    monkeypatch.setattr(registry, "_OURS", dict(registry._OURS))
    exec(rule, {})
    scope = dict(vars(fusion))
    exec(program, scope)
    patterns = (*fusion.PATTERNS, eval(pattern, scope))
    pipeline.forget()
    with mock.patch.object(pipeline, "PATTERNS", patterns):
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
