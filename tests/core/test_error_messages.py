"""Errors name the equation that cannot be lowered, and its line in the program."""

import functools
import re

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert, jax_compat, registry
from lowering.core.caches import ProgramCaches
from lowering.core.interpreter import Interpreter
from lowering.errors import LoweringError, UnsupportedError
from lowering.ops.dims import Dimensions
from lowering.passes.program import Program
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


@pytest.mark.parametrize(
    ("name", "result", "reason"),
    [
        ("dtype", lambda ctx, x: tf.cast(x, tf.float64), "returned float64, not float32"),
        (
            "shape",
            lambda ctx, x: tf.reshape(x, [1]),
            "shape (1,) is not compatible with supplied shape ()",
        ),
    ],
)
def test_a_wrong_result_of_a_rule_names_the_equation(name, result, reason):
    primitive = failing(f"gives_another_{name}", result)
    message = message_of(primitive.bind, np.float32(1))
    assert f"gives_another_{name}(f32[]) at " in message and reason in message


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


def test_a_program_of_jax_without_lines_has_that_of_its_call():
    exported = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((3,), "float32"))

    def program(x):
        return exported.call(x) + 1

    for fun in (program, jax.jit(program), lambda x: jax.lax.map(lambda _: program(x), x)):
        message = message_of(fun, np.ones(3, np.float32), error=UnsupportedError)
        assert re.search(r"call_exported\(.*test_error_messages\.py:\d+:\d+ \(.*program\)", message)


def test_an_equation_without_a_line_has_that_of_the_function():
    primitive = failing("is_in_no_line", lambda ctx, x: ctx.unsupported("it is refused"))
    traced = jax.make_jaxpr(primitive.bind)(np.float32(1))
    (eqn,) = traced.eqns
    empty = eqn.source_info.replace(traceback=jax_compat._NO_SOURCE)
    program = Program(traced, None, frozenset(), traced, source="model.py:3 (model)")
    interpreter = Interpreter(TF, Dimensions({}), program, ProgramCaches())
    with pytest.raises(
        UnsupportedError, match=r"is_in_no_line\(f32\[\]\) at model\.py:3 \(model\)"
    ):
        interpreter.equation(eqn.replace(source_info=empty), [tf.constant(1.0)])


def wants_python(x, train, config=None):
    if train if config is None else config["train"]:
        return x
    return -x


class Model:
    def __call__(self, x, flag):
        return x if flag else -x


@pytest.mark.parametrize(
    ("fun", "args", "kwargs", "named", "advised"),
    [
        (wants_python, (1.0,), {"train": True}, "wants_python at {file}:", "train=True"),
        (wants_python, (1.0, 3), {}, "the argument train.", "(wants_python, train=3)"),
        (wants_python, (1.0, 0, {"train": 1}), {}, "config['train']", "config=..."),
        (wants_python, (1.0, np.bool_(True)), {}, "the argument train.", None),
        (Model(), (1.0, True), {}, "__call__ at {file}:", "(fun, flag=True)"),
        (functools.partial(wants_python, 1.0), (True,), {}, "wants_python at", "train=True"),
        (lambda x, n: jnp.zeros(n) + x, (1.0, 3), {}, "the argument n.", "(fun, n=3)"),
        (lambda x, *n: sum(x for _ in range(n[0])), (1.0, 3), {}, "n[0]", "n=..."),
        (jax.jit(wants_python), (1.0, True), {}, "wants_python at {file}:", "train=True"),
    ],
)
def test_a_value_that_tracing_lacks(fun, args, kwargs, named, advised):
    """JAX's message names the user's function and argument; ours how to fix a Python value."""
    with pytest.raises(TypeError) as caught:
        convert(fun)(*args, **kwargs)
    message = str(caught.value)
    assert named.format(file=__file__) in message and "passes/" not in message
    assert ("functools.partial" in message) == (advised is not None)
    assert advised is None or advised in message


def test_a_derivative_that_cannot_be_traced_names_the_function():
    @jax.custom_vjp
    def twice(x):
        return x * 2

    twice.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct if x > 0 else -ct,))
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = convert(lambda x: twice(x))(x)
    with pytest.raises(LoweringError, match=r"<lambda> at .*test_error_messages\.py:\d+"):
        tape.gradient(y, x)
