"""What is compared with JAX, and what is said of a difference."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from lowering.errors import UnsupportedError
from lowering.export import differences, onnx, quantization, reach, verification
from lowering.export.entries import entry
from lowering.targets import ONNX, TF, TFLITE

X = np.float32([0.5, np.nan, -2.0])
NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("dtype", "expected", "actual"),
    [
        ("int64", 2**60, 2**60 + 1),
        ("int64", -(2**63), 2**63 - 1),
        ("int64", 2**63 - 1, 2**63 - 2),
        ("uint64", 2**64 - 1, 2**64 - 2),
        ("uint64", 0, 1),
        ("int32", -(2**31), 2**31 - 1),
        ("uint8", 0, 255),
        ("int8", -128, 127),
        ("float32", INF, 3e38),
        ("complex64", 1 + 1j, 1 - 1j),
        ("bool", True, False),
    ],
)
def test_every_difference_is_one(dtype, expected, actual):
    e, a = np.array([1, expected], dtype), np.array([1, actual], dtype)
    for x, y in ((e, a), (a, e)):
        found = differences.difference(x, y)
        assert found.error > 0
        assert found.where == f"at [1] JAX has {x[1]}, and the model {y[1]}"
        assert differences.difference(x, x).error == 0


def test_a_difference_of_64_bits_is_an_error(monkeypatch):
    monkeypatch.setattr(onnx, "run", lambda model, made: {"result": np.int64([2**60 + 1])})
    with (
        jax.enable_x64(True),
        pytest.raises(
            export.VerificationError, match=f"JAX has {2**60}, and the model {2**60 + 1}"
        ),
    ):
        export.to_onnx(lambda x: x * 2, (np.int64([2**59]),))


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (
            [1.0, 2.0],
            [NAN, 2.0],
            "the model has NaN in 1 of 2 elements where JAX has numbers, such as",
        ),
        (
            [NAN, NAN],
            [NAN, 2.0],
            "JAX has NaN in 1 of 2 elements where the model has numbers, such as 2.0",
        ),
    ],
)
def test_who_has_nan_is_said(expected, actual, said, monkeypatch):
    """Also on a target of natural numerics, as no op is given a NaN."""
    monkeypatch.setattr(onnx, "run", lambda model, made: {"result": np.float32(actual)})
    x = np.exp(np.float32(expected))
    x[np.isnan(x)] = -1
    with pytest.raises(export.VerificationError, match=said):
        export.to_onnx(jnp.log, (x,))


def clipped(x):
    return jnp.clip(x, -1, 1), jnp.maximum(x, 0)


def test_what_becomes_of_nan_is_left_open(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "lowering.export"):
        export.to_tfjs(clipped, (X,), tmp_path / "model")
    assert "left open" in caplog.text
    export.to_onnx(lambda x: jnp.clip(jnp.log(x), -1, 1), (np.float32([-1, 1]),))


@pytest.mark.parametrize(
    ("found", "is_open"), [([0.5, -1.0, -1.0], True), ([0.5, 3.0, 7.0], False), ([NAN] * 3, False)]
)
def test_nothing_else_is_left_open(found, is_open, monkeypatch, tmp_path):
    results = {"result": np.float32(found)}
    monkeypatch.setattr(onnx, "run", lambda model, made: results)
    monkeypatch.setattr(export.saved_model, "run", lambda path, name, made: results)

    def clip(x):
        return jnp.clip(x, -1, 1)

    if is_open:
        export.to_onnx(clip, (X,))
    else:
        with pytest.raises(export.VerificationError):
            export.to_onnx(clip, (X,))
    with pytest.raises(export.VerificationError):
        export.to_saved_model(clip, (X,), tmp_path / "model")


@pytest.mark.parametrize(("x", "is_said"), [([1.0, NAN, -1.0], True), ([1.0, 2.0, -1.0], False)])
def test_numbers_that_compiled_jax_makes_of_nan(x, is_said, monkeypatch, tmp_path):
    """XLA makes a number of NaN that single ops do not make; the message says whose it is."""
    x = np.float32(x)

    def positive(x):
        return jnp.where(jnp.maximum(x, 0) >= 0, 1.0, 2.0), x

    compiled, by_op = jax.jit(positive)(x)[0], positive(x)[0]
    assert np.array_equal(compiled, by_op) != is_said
    results = {"result_0": np.array(by_op), "result_1": x}
    if not is_said:
        results["result_0"] = np.float32([1, 2, 1])
    monkeypatch.setattr(export.saved_model, "run", lambda path, name, made: results)
    with pytest.raises(export.VerificationError, match="'result_0' by") as raised:
        export.to_saved_model(positive, (x,), tmp_path / "model")
    said = "as with jax.disable_jit(), computes what the model does of 'result_0': XLA makes"
    assert (said in str(raised.value)) == is_said


def with_branches(x):
    y = jax.lax.cond(x.sum() > 30, jnp.sin, jnp.cos, x)

    @jax.jit
    def step(carry, row):
        return jax.lax.cond(row > 0, jnp.tanh, jnp.negative, carry) + row, row

    return (
        jax.lax.scan(step, x[0], x),
        y,
        jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
    )


def with_a_loop(x, n):
    x = jax.lax.while_loop(lambda x: x.sum() > 100, lambda x: x / 2, x)
    return jax.lax.switch(n, [jnp.sin, jnp.cos, jnp.tanh], x)


def reached(fun, *args, target=ONNX):
    return list(reach.sampled("the model", entry(fun, args, target)))


def test_random_samples_reach_all_branches(caplog):
    made = reached(with_branches, jax.ShapeDtypeStruct((9,), "float32"))
    sums = [float(m.samples[0].sum()) for m in made]
    assert min(sums) <= 30 < max(sums) and not caplog.text


def test_branches_that_no_sample_reaches_are_said(caplog):
    made = reached(with_branches, np.float32([1, 2, 3]), target=TF)
    assert len(made) == 1
    assert caplog.text.count("branch ") == 2 and caplog.text.count("test_verification.py:") == 2
    caplog.clear()
    shape = jax.ShapeDtypeStruct((3,), "float32")
    made = reached(with_a_loop, shape, jax.ShapeDtypeStruct((), "int32"))
    assert len(made) == 1  # Of other samples the loop might not end.
    assert "the body of while at " in caplog.text and caplog.text.count("branch ") == 2


def test_loops_that_end_apart_are_followed(caplog):
    """Under `vmap` the test of a loop is an array."""

    def halved(x):
        x = jax.lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)
        return jax.lax.cond(x > 0, jnp.sin, jnp.cos, x)

    assert len(reached(jax.vmap(halved), np.float32([9, 3, -1]))) == 1
    assert not caplog.text
    reached(jax.vmap(halved), np.float32([-9, 0]))
    assert "the body of while at " in caplog.text


def test_a_wrong_branch_is_found(monkeypatch):
    """The first samples do not reach it."""

    def run(model, made):
        return {"result": np.cos(made.samples[0])}

    monkeypatch.setattr(onnx, "run", run)
    shape = jax.ShapeDtypeStruct((3,), "float32")
    with pytest.raises(export.VerificationError, match="differs from JAX"):
        export.to_onnx(lambda x: jax.lax.cond(x.sum() > 3, jnp.sin, jnp.cos, x), (shape,))


def whole_part_of_sums(x):
    return jnp.floor(jnp.cumsum(x)), jnp.sin(x)


@pytest.mark.parametrize(
    ("args", "is_said"),
    [
        ((jnp.asarray([0.4, 2.6, 1.3], jnp.bfloat16),), True),
        ((jnp.asarray([0.2, 2.3, 1.9], jnp.bfloat16),), False),
    ],
)
def test_what_jax_itself_does_not_determine_is_said(args, is_said, monkeypatch):
    """A sum that is next to a whole number may be on its other side after other roundings."""
    whole, sines = whole_part_of_sums(*args)
    results = {"result_0": np.float32(whole) - 1, "result_1": np.float32(sines)}
    monkeypatch.setattr(onnx, "run", lambda model, made: results)
    with pytest.raises(export.VerificationError, match="'result_0' by") as caught:
        export.to_onnx(whole_part_of_sums, args)
    assert ("JAX's own results move as far, 'result_0' by" in str(caught.value)) == is_said


def mixture(params, x):
    """The values of an expert that scores choose; layers are a scan, or stand one by one."""

    def layer(x, params):
        _, chosen = jax.lax.top_k(x @ params["router"], 1)
        return x + params["experts"][chosen[0]], None

    return jax.lax.scan(layer, x, params)[0]


@pytest.mark.parametrize(("gap", "is_said"), [(0.12, True), (5.0, False)])
def test_choices_of_a_quantized_model_are_said(gap, is_said):
    """The second expert has a score that is less by a few steps of the weights, or by many."""
    rng = np.random.default_rng(0)
    router = np.repeat(rng.normal(size=(1, 16, 1)), 2, 0) * np.ones(2)
    x = np.ones(16)
    router[:, 0, 0] += gap
    experts = np.stack([np.zeros((2, 16)), rng.normal(size=(2, 16))], 1)
    params = {"router": np.float32(router), "experts": np.float32(experts)}
    made = entry(mixture, (np.float32(x),), TFLITE, params=params)
    expected = made.reference(*made.samples)[0]
    results = {"result": expected + np.float32(experts[0, 1])}
    weights = quantization.TFLITE["dynamic"]
    with pytest.raises(export.VerificationError, match="for the quantization") as caught:
        verification.verify(
            "it", made, results, None, lambda other: quantization.spread(other, weights)
        )
    assert ("`top_k` at " in str(caught.value)) == is_said
    assert ("test_verification.py" in str(caught.value)) == is_said


def test_an_error_without_a_message_is_named():
    doing = "LiteRT failed to run the model: AssertionError"
    with (
        pytest.raises(UnsupportedError, match=doing),
        verification.refusals("LiteRT", "run the model"),
    ):
        raise AssertionError
