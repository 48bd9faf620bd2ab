"""Whole models compute what `jax.jit` computes, in every mode, and without JAX from SavedModels."""

import functools
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering
from harnesses import models, without_jax
from harnesses.models import symbolic
from tests.helpers import MODES, in_mode, op_counts
from tests.turns import turns

# Saved by hand; the exporters' tests save what is lowered for the other targets.
SAVED_TARGETS = ("tf", "xla")
TARGETS = (*SAVED_TARGETS, "portable")
# One for each kind of network: windows, loops, attention, scattered sums.
GRADIENTS = ("cnn", "seq2seq_lstm", "transformer", "graph_network")

# Runs in a process of its own: loads each SavedModel named on the command line, calls it with the
# inputs found beside it and writes what it returns, or the gradients of the sum of its squares.
LOADER = """
    import pathlib
    import sys

    import numpy as np
    import tensorflow as tf

    for directory in map(pathlib.Path, sys.argv[2:]):
        restored = tf.saved_model.load(directory)
        inputs = np.load(directory / "inputs.npz")
        arguments = [inputs[name] for name in inputs.files]
        if sys.argv[1] == "outputs":
            results = restored.run(*arguments)
        else:
            with tf.GradientTape() as tape:
                outputs = restored.run(*arguments)
                squares = [tf.reduce_sum(y**2) for y in outputs if y.dtype == tf.float32]
                loss = tf.add_n(squares)
            results = tape.gradient(loss, restored.leaves)
        np.savez(directory / "results.npz", *(result.numpy() for result in results))
"""


class Case(NamedTuple):
    """A model with the values that all its tests use."""

    model: models.Model
    params: Any
    inputs: Any
    expected: list[np.ndarray]


@functools.cache
def make_case(name: str) -> Case:
    model = models.load(name, "small")
    params, inputs = model.init(0), model.make_inputs(1)
    return Case(model, params, inputs, by_jax(model, params, inputs))


def by_jax(model: models.Model, params: Any, inputs: Any) -> list[np.ndarray]:
    """What JAX computes, as a flat list."""
    return list(map(np.asarray, jax.tree.leaves(jax.jit(model.apply)(params, inputs))))


@pytest.fixture(params=models.NAMES)
def case(request) -> Case:
    return make_case(request.param)


def assert_same(case: Case, actual: list[Any]) -> None:
    assert len(actual) == len(case.expected)
    for got, expected in zip(actual, case.expected, strict=True):
        got = np.asarray(got)
        assert got.dtype == expected.dtype
        if np.issubdtype(expected.dtype, np.floating):
            tolerance = case.model.tolerance * np.abs(expected).max()
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, expected)


def assert_same_gradients(case: Case, actual: list[Any]) -> None:
    """Compares with the gradients of the sum of all squared outputs."""

    def loss(params):
        outputs = jax.tree.leaves(case.model.apply(params, case.inputs))
        return sum((y**2).sum() for y in outputs if y.dtype == np.float32)

    expected = [np.asarray(g) for g in jax.tree.leaves(jax.jit(jax.grad(loss))(case.params))]
    # Relative to the largest gradient of all, as some are zero up to rounding.
    tolerance = 10 * case.model.tolerance * max(np.abs(g).max() for g in expected)
    for got, want in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


class Saved(tf.Module):
    """A converted model with its parameters as variables; `run` takes and returns flat lists."""

    def __init__(self, case: Case, **options: Any):
        super().__init__()
        leaves, params_tree = jax.tree.flatten(case.params)
        inputs, inputs_tree = jax.tree.flatten(case.inputs)
        self.leaves = [tf.Variable(leaf) for leaf in leaves]
        converted = lowering.convert(case.model.apply, **options)

        @tf.function(
            autograph=False, input_signature=[tf.TensorSpec(x.shape, x.dtype) for x in inputs]
        )
        def run(*inputs):
            params = jax.tree.unflatten(params_tree, list(self.leaves))
            return jax.tree.leaves(converted(params, jax.tree.unflatten(inputs_tree, inputs)))

        self.run = run


@pytest.mark.parametrize(
    ("case", "mode", "target"),
    [
        (name, mode, t)
        for name in models.NAMES
        for mode in MODES
        for t in turns(TARGETS, name, mode)
    ],
    indirect=["case"],
)
def test_same_as_jax(case, mode, target):
    function = lowering.convert(case.model.apply, target=target)
    function = in_mode(function, mode)
    params, inputs = jax.tree.map(tf.constant, (case.params, case.inputs))
    assert_same(case, jax.tree.leaves(function(params, inputs)))


@pytest.mark.parametrize(
    ("case", "target"),
    [(name, target) for name in models.NAMES for target in turns(TARGETS, name)],
    indirect=["case"],
)
def test_symbolic_shapes(case, target):
    """With as many symbolic dimensions as JAX can trace, a graph computes inputs of two sizes."""
    traced = [m for choice in symbolic.choices(case.model) if (m := multiples(case, choice))]
    chosen = max(traced, key=len)
    shapes = symbolic.shapes(case.model, chosen)
    converted = lowering.convert(case.model.apply, target=target, polymorphic_shapes=[None, shapes])
    inputs_specs = jax.tree.map(
        lambda x: tf.TensorSpec([d if isinstance(d, int) else None for d in x.shape], x.dtype),
        symbolic.specs(case.model, chosen),
    )
    function = tf.function(lambda inputs: converted(case.params, inputs), autograph=False)
    concrete = function.get_concrete_function(inputs_specs)
    for extra in (0, 1):
        sizes = {name: case.model.dimensions[name] + extra * m for name, m in chosen.items()}
        inputs = case.model.make_inputs(2, **sizes)
        of_size = case._replace(inputs=inputs, expected=by_jax(case.model, case.params, inputs))
        flat = jax.tree.leaves(concrete(jax.tree.map(tf.constant, inputs)))
        assert_same(of_size, flat)


def multiples(case: Case, choice: tuple[str, ...]) -> dict[str, int] | None:
    """The dimensions of a choice with what they are multiples of, if JAX can trace the model."""
    try:
        return symbolic.trace(case.model, choice)
    except Exception:
        return None


@pytest.mark.parametrize("case", GRADIENTS, indirect=True)
@pytest.mark.parametrize("target", TARGETS)
def test_gradients(case, target):
    converted = lowering.convert(case.model.apply, target=target)
    params, treedef = jax.tree.flatten(jax.tree.map(tf.constant, case.params))

    @tf.function(autograph=False)
    def gradients():
        with tf.GradientTape() as tape:
            tape.watch(params)
            outputs = converted(jax.tree.unflatten(treedef, params), case.inputs)
            outputs = jax.tree.leaves(outputs)
            loss = tf.add_n([tf.reduce_sum(y**2) for y in outputs if y.dtype == tf.float32])
        return tape.gradient(loss, params)

    assert_same_gradients(case, gradients())


def save(case: Case, directory: pathlib.Path, **options: Any) -> Saved:
    """Saves a converted model, and the inputs to call it with."""
    module = Saved(case, **options)
    save_options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, directory, options=save_options)
    np.savez(directory / "inputs.npz", *jax.tree.leaves(case.inputs))
    return module


def run_without_jax(what: str, directories: list[pathlib.Path]) -> list[list[np.ndarray]]:
    """Returns the "outputs" or "gradients" of saved models, computed in a fresh process."""
    without_jax.run(LOADER, what, *directories)
    archives = [np.load(directory / "results.npz") for directory in directories]
    return [[archive[name] for name in archive.files] for archive in archives]


def test_saved_models_run_without_jax(tmp_path):
    """All models in one process, which takes longer to start than to run a model."""
    saved = [(make_case(name), target) for name in models.NAMES for target in SAVED_TARGETS]
    directories = [tmp_path / case.model.name / target for case, target in saved]
    for (case, target), directory in zip(saved, directories, strict=True):
        module = save(case, directory, target=target, with_gradient=case.model.differentiable)
        if target == "tf":
            concrete = module.run.get_concrete_function()
            assert not {op for op in op_counts(concrete.graph) if op.startswith("Xla")}
    results = run_without_jax("outputs", directories)
    for (case, _), outputs in zip(saved, results, strict=True):
        assert_same(case, outputs)


@pytest.mark.parametrize("case", ["cnn"], indirect=True)
def test_saved_gradients_run_without_jax(case, tmp_path):
    for target in SAVED_TARGETS:
        save(case, tmp_path / target, target=target)
    for gradients in run_without_jax("gradients", [tmp_path / target for target in SAVED_TARGETS]):
        assert_same_gradients(case, gradients)


@pytest.mark.parametrize("case", ["cnn"], indirect=True)
def test_saved_models_without_gradients(case, tmp_path):
    for target in SAVED_TARGETS:
        save(case, tmp_path / target, target=target, with_gradient=False)
        restored = tf.saved_model.load(tmp_path / target)
        inputs = jax.tree.leaves(case.inputs)
        assert_same(case, restored.run(*inputs))
        with pytest.raises(LookupError, match="with_gradient=False"), tf.GradientTape() as tape:
            tape.gradient(restored.run(*inputs), restored.leaves)
