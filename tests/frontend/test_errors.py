"""Errors have the types that callers catch, under AutoGraph too."""

import pickle
import re

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import convert
from lowering.export import entries
from lowering.targets import TF
from tests.helpers import MODES

X = np.ones((2, 3), np.float32)


def in_autograph(fun_tf, mode):
    """`in_mode`, with AutoGraph, which is on by default."""
    if mode == "eager":
        return fun_tf
    return tf.function(lambda *args: fun_tf(*args), jit_compile=mode == "compiled")


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap, jax.make_jaxpr])
@pytest.mark.parametrize("kind", [lowering.LoweringError, ValueError])
def test_inside_of_a_transformation(transform, kind):
    with pytest.raises(kind, match="inside a JAX transformation"):
        transform(lambda x: convert(lambda x: x.sum())(x))(X)


@pytest.mark.parametrize("kind", [lowering.LoweringError, ValueError])
def test_a_tracer_that_has_escaped(kind):
    escaped = []
    jax.jit(lambda x: escaped.append(x) or x)(X)
    with pytest.raises(kind, match="is a JAX tracer"):
        convert(lambda x: x)(escaped[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ValueError, tf.errors.InvalidArgumentError, lowering.ShapeError])
@pytest.mark.parametrize("spec", ["b, b", "4*b, _", "b", "b, c, d", "b, 4", "b + 2, _"])
def test_sizes_that_do_not_fit(mode, kind, spec):
    fun_tf = in_autograph(convert(lambda x: x, polymorphic_shapes=spec), mode)
    with pytest.raises(kind, match=r"args\[0\]"):
        fun_tf(X)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "spec",
    ["(b", "b b, c", "b,,c", "b, 3.5", "_, -1", "..., b", "b*, c", 5, ["b", "c"], "b + c, _"],
)
def test_what_is_no_specification(mode, spec):
    fun_tf = in_autograph(convert(lambda x: x, polymorphic_shapes=[spec]), mode)
    with pytest.raises(ValueError):
        fun_tf(X)


@pytest.mark.parametrize(
    "constraints",
    [
        "b >= 4",
        ["b"],
        ["b >"],
        ["b>="],
        ["== b"],
        [4],
        ["b > 3"],
        ["b >= c >= 3"],
        ["b >= 3)"],
        ["b >= (3"],
    ],
)
def test_what_is_no_constraint(constraints):
    fun_tf = convert(lambda x: x, polymorphic_shapes="b, _", polymorphic_constraints=constraints)
    options = {"polymorphic_shapes": ["b, _"], "polymorphic_constraints": constraints}
    wrong = constraints if isinstance(constraints, str) else constraints[0]
    with pytest.raises(ValueError, match=rf"polymorphic_constraints .*{re.escape(repr(wrong))}"):
        fun_tf(X)
    if wrong is not constraints:
        with pytest.raises(ValueError, match=re.escape(f"polymorphic_constraints has {wrong!r}")):
            entries.entry(lambda x: x, (X,), TF, **options)


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_lowered(mode):
    def fun(x):
        return jax.ffi.ffi_call("nothing", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    for kind in (lowering.LoweringError, lowering.UnsupportedError, NotImplementedError):
        with pytest.raises(kind, match=r"ffi_call.*test_errors.py"):
            in_autograph(convert(fun), mode)(X)


def test_errors_can_be_sent_to_other_processes():
    for error in (
        lowering.LoweringError("reason"),
        lowering.UnsupportedError.with_location("reason"),
        lowering.TransformationError("reason"),
        lowering.ShapeError.because("reason"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert "reason" in str(copy)


@pytest.mark.parametrize("mode", MODES)
def test_float0(mode):
    fun_tf = convert(lambda i: jax.grad(lambda i: i.sum() * 2.0, allow_int=True)(i))
    result = in_autograph(fun_tf, mode)(np.int32([1, 2]))
    assert result.dtype == tf.bool
    np.testing.assert_array_equal(result, [False, False])
    zeros = np.zeros(2, jax.dtypes.float0)
    np.testing.assert_array_equal(in_autograph(convert(lambda x: x), "eager")(zeros), [False] * 2)
