"""Random systems of specifications: the values of variables, against trying all of them."""

import itertools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
import tensorflow as tf

from lowering import ShapeError
from lowering.frontend import checks, plans, polymorphic

NAMES = "abc"
# No variable is larger in a solution, as sizes are at most 12 and terms small.
LARGEST = 40

TERMS = ["a", "b", "c", "a*b", "a*a", "floordiv(a, 2)", "mod(b, 3)", "max(a, b)", "min(b, c)"]


@st.composite
def dimensions(draw, terms=TERMS):
    """The text of a dimension; most are sums of one or two variables."""
    chosen = draw(st.lists(st.sampled_from(terms[:3] * 4 + terms[3:]), min_size=1, max_size=2))
    coefficients = draw(st.lists(st.sampled_from([1, 1, 2, 3, -1]), min_size=2, max_size=2))
    text = " + ".join(f"{k}*{term}" for k, term in zip(coefficients, chosen))
    constant = draw(st.sampled_from([0, 0, 1, -2]))
    return text.replace("+ -", "- ") + (f" + {constant}" if constant > 0 else f" - {-constant}")


@st.composite
def systems(draw):
    """Specifications of two arguments, and sizes; these often follow from values of variables."""
    shapes = draw(st.lists(st.lists(dimensions(), min_size=1, max_size=3), min_size=1, max_size=2))
    values = dict(zip(NAMES, draw(st.tuples(*[st.integers(1, 4)] * 3))))
    sizes = [[evaluate(text, values) for text in texts] for texts in shapes]
    changed, axis = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    if changed < len(sizes) and axis < len(sizes[changed]):
        sizes[changed][axis] += draw(st.integers(-2, 2))
    hypothesis.assume(all(0 <= size <= 12 for row in sizes for size in row))
    return [f"({', '.join(texts)},)" for texts in shapes], sizes


def evaluate(text, values):
    scope = {"floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "max": max, "min": min}
    return eval(text.replace("^", "**"), scope, values)


def parsed(specs, constraints=()):
    leaves = [(f"args[{i}]", (None,) * count(spec)) for i, spec in enumerate(specs)]
    return polymorphic.symbolic_shapes([0] * len(specs), specs, constraints, leaves)


def count(spec):
    return len(jax.export.symbolic_shape(spec))


def solutions(specs, sizes):
    """All values of the variables that give the sizes."""
    texts = [text for spec in specs for text in polymorphic._split(spec)]
    flat = [size for row in sizes for size in row]
    names = sorted({name for name in NAMES for text in texts if uses(text, name)})
    for values in itertools.product(range(1, LARGEST), repeat=len(names)):
        assignment = dict(zip(names, values))
        if all(evaluate(text, assignment) == size for text, size in zip(texts, flat)):
            yield assignment


def uses(text, name):
    return name in text.replace("floordiv", "").replace("max", "").replace("mod", "")


@hypothesis.settings(max_examples=80, deadline=None)
@hypothesis.given(systems())
def test_variables_are_those_that_give_the_sizes(system):
    specs, sizes = system
    try:
        arguments, scope = parsed(specs)
        plan = plans.plan(arguments, scope, ())
    except ValueError as error:
        # Not linear, or too few equations.
        assert "cannot solve" in str(error) or "negative" in str(error)
        return
    tensors = [tf.zeros(row) for row in sizes]
    found = next(solutions(specs, sizes), None)
    try:
        variables = checks.Sizes(plan, tensors).variables
    except ShapeError as error:
        assert found is None or "may be anything" in str(error), str(error)
        return
    assert found is not None
    assert {name: int(value) for name, value in variables.items()} == {
        name: found[name] for name in variables
    }


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(systems())
def test_tensors_and_ints_are_checked_alike(system):
    specs, sizes = system
    try:
        arguments, scope = parsed(specs)
        plan = plans.plan(arguments, scope, ())
    except ValueError:
        return

    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec([None] * len(a.shape)) for a in arguments],
    )
    def in_graph(*tensors):
        found = checks.Sizes(plan, tensors)
        with checks.checked(found, check=True) as (variables, _):
            return {name: tf.identity(value) for name, value in variables.items()}

    tensors = [tf.zeros(row) for row in sizes]
    try:
        expected = checks.Sizes(plan, tensors).variables
    except ShapeError:
        with pytest.raises(tf.errors.InvalidArgumentError):
            in_graph(*tensors)
    else:
        actual = in_graph(*tensors)
        assert {k: int(v) for k, v in actual.items()} == {k: int(v) for k, v in expected.items()}


# What JAX's own export, which solves for one variable after the other, accepts and refuses.
EXPORTED = [
    (["b, b"], [], [(4, 4)], [(4, 5)]),
    (["2*b"], [], [(4,)], [(5,)]),
    (["b"], ["b >= 4"], [(4,)], [(3,)]),
    (["b"], ["b >= 0"], [(1,)], [(0,)]),
    (["b"], ["b <= 4"], [(4,)], [(5,)]),
    (["b"], ["mod(b, 3) == 0"], [(6,)], [(5,)]),
    (["a", "b"], ["floordiv(b, 2) == a"], [(2,), (5,)], [(2,), (6,)]),
    (["a, b"], ["a == b + 1"], [(4, 3)], [(4, 4)]),
    (["a + 2*b, a"], [], [(7, 3)], [(8, 3)]),
    (["b - 1"], [], [(0,)], None),
    (["b + 2"], [], [(3,)], [(2,)]),
    (["3*b - 3"], [], [(0,)], [(1,)]),
    (["a, floordiv(a, 2)"], [], [(5, 2)], [(5, 3)]),
]


@pytest.mark.parametrize(("specs", "constraints", "right", "wrong"), EXPORTED)
def test_what_jax_exports(specs, constraints, right, wrong):
    scope = jax.export.SymbolicScope(constraints)
    structs = [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(spec, scope=scope), np.float32)
        for spec in specs
    ]
    exported = jax.export.export(jax.jit(lambda *xs: xs))(*structs)
    arguments, scope = parsed(specs, constraints)
    plan = plans.plan(arguments, scope, tuple(constraints))
    for shapes, fit in ((right, True), (wrong, False)):
        if shapes is None:
            continue
        for call in (
            lambda s: jax.eval_shape(
                exported.call, *(jax.ShapeDtypeStruct(x, np.float32) for x in s)
            ),
            lambda s: checks.Sizes(plan, [tf.zeros(x) for x in s]),
        ):
            if fit:
                call(shapes)
            else:
                with pytest.raises(ValueError):
                    call(shapes)


@pytest.mark.parametrize("spec", ["a + b", "a*b", "a*a", "floordiv(a, 2)", "max(a, 3)", "a - a*b"])
def test_what_does_not_determine_the_variables(spec):
    with pytest.raises(ValueError, match=r"cannot solve .* args\[0\].shape\[0\]"):
        plans.plan(*parsed([spec]), ())


def test_a_constraint_on_a_variable_that_no_shape_has():
    with pytest.raises(ValueError, match="no shape has the variable c"):
        plans.plan(*parsed(["b"], ["c >= 4"]), ("c >= 4",))


def test_large_systems():
    """Ten unknowns in ten equations, of which each has all but one."""
    names = [f"v{i}" for i in range(10)]
    spec = ", ".join(" + ".join(n for n in names if n != skipped) for skipped in names)
    sizes = [sum(range(1, 11)) - i for i in range(1, 11)]
    (argument,), scope = parsed([spec])
    steps = plans.plan((argument,), scope, ())
    with tf.Graph().as_default():
        tensor = tf.compat.v1.placeholder(tf.float32, sizes)
        values = checks.Sizes(steps, [tensor])._found
    assert values == {f"v{i}": i + 1 for i in range(10)}
