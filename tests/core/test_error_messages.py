"""Errors name the equation that cannot be lowered, and its line in the program."""

import re

import jax.extend.core as jex_core
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert, registry
from lowering.errors import LoweringError, UnsupportedError
from lowering.targets import TF
from tests.core.identities import identity_primitive


def failing(name, fail, target=TF):
    primitive = identity_primitive(name)
    registry.rule(name, target=target)(lambda ctx, x: fail(ctx, x))
    return primitive


def message_of(fun, *args, error=LoweringError, **kwargs):
    with pytest.raises(error) as caught:
        convert(fun, **kwargs)(*args)
    return str(caught.value)


def test_a_refusal_names_everything():
    primitive = failing(
        "refused_here", lambda ctx, x: ctx.unsupported("it is refused", "Use another one")
    )

    def model(x):
        return primitive.bind(x * 2)

    message = message_of(model, np.int32([1, 2]), error=UnsupportedError, target="tf")
    assert message.startswith("refused_here(i32[2]) at ")
    assert re.search(r"test_error_messages\.py:\d+.*model", message)
    assert message.endswith("cannot be lowered for target 'tf': it is refused. Use another one")


@pytest.mark.parametrize("error", [ValueError("bad"), TypeError("bad")])
def test_an_error_of_a_rule_names_the_equation(error):
    def fail(ctx, x):
        raise error

    name = f"raises_{type(error).__name__}"
    primitive = failing(name, fail)
    message = message_of(primitive.bind, np.float32(1))
    assert f"{name}(f32[]) at " in message
    assert message.endswith(f"{type(error).__name__}: bad")


def test_an_error_of_tensorflow_names_the_equation():
    primitive = failing("fails_in_a_kernel", lambda ctx, x: tf.reshape(x, [7]))
    message = message_of(primitive.bind, np.float32([1, 2]), target="xla")
    assert "fails_in_a_kernel(f32[2])" in message and "target 'xla'" in message


def test_an_error_in_a_decomposition_names_the_program():
    inner = failing("inside_fails", lambda ctx, x: ctx.unsupported("it is refused"))
    outer = identity_primitive("decomposes_into_failure")
    registry.decomposition(outer.name)(lambda x: inner.bind(x))

    def model(x):
        return outer.bind(x)

    message = message_of(model, np.float32(1), error=UnsupportedError)
    assert "decomposes_into_failure" in message
    assert re.search(r"test_error_messages\.py:\d+.*model", message)
    assert "it is refused" in message


def test_a_wrong_dtype_of_a_rule_is_noticed():
    primitive = failing("gives_another_dtype", lambda ctx, x: tf.cast(x, tf.float64))
    with pytest.raises(AssertionError, match="float64, not float32"):
        convert(primitive.bind)(np.float32(1))


def test_unknown_primitive():
    primitive = jex_core.Primitive("undreamt_of")
    primitive.def_abstract_eval(lambda x: x)
    with pytest.raises(UnsupportedError) as caught:
        convert(primitive.bind, target="tf")(np.float32([1]))
    message = str(caught.value)
    assert "undreamt_of(f32[1])" in message
    assert "target 'tf'" in message
    assert isinstance(caught.value, NotImplementedError)


def test_the_line_of_the_program_is_named():
    primitive = jex_core.Primitive("undreamt_of_either")
    primitive.def_abstract_eval(lambda x: x)

    def program(x):
        return primitive.bind(x + 1)

    with pytest.raises(UnsupportedError, match=r"test_error_messages\.py:\d+.*program"):
        convert(program)(np.float32([1]))
