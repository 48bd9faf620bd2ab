"""The framework: registry, constants, folding, dimensions, dtypes, ops and the interpreter."""

import collections
import pathlib
import re
import subprocess
import sys

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.interpreters import mlir

import lowering
from lowering import convert, jax_compat, registry
from lowering.core import folding
from lowering.errors import LoweringError, UnsupportedError
from lowering.ops import constants, dims, dtypes, emission, kernels
from lowering.targets import target as targets

MODES = ["eager", "graph", "compiled"]


def graph_of(fun_jax, *args, **kwargs):
    """The graph of the conversion of a JAX function, with arguments unknown to it."""
    fun_tf = tf.function(convert(fun_jax, with_gradient=False, **kwargs), autograph=False)
    specs = [
        a if isinstance(a, tf.TensorSpec) else tf.TensorSpec(np.shape(a), np.asarray(a).dtype)
        for a in args
    ]
    return fun_tf.get_concrete_function(*specs).graph


def op_types(graph):
    """The types of the ops that compute something."""
    ignored = {"Placeholder", "Identity", "NoOp", "PreventGradient"}
    return [op.type for op in graph.get_operations() if op.type not in ignored]


def identity_primitive(name):
    """A primitive that is the identity in JAX."""
    primitive = jex_core.Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, lambda ctx, x: [x])
    return primitive


@pytest.fixture
def clean_registry(monkeypatch):
    """A registry without rules."""
    monkeypatch.setattr(registry, "_RULES", collections.defaultdict(list))


# The registry.


def test_a_target_inherits_rules_and_overrides_them(clean_registry):
    base = registry.rule("one", "two")(lambda ctx, x: "base")
    special = registry.rule("two", target=targets.XLA)(lambda ctx, x: "special")
    assert registry.lookup("one", targets.XLA).fun is base
    assert registry.lookup("two", targets.XLA).fun is special
    assert registry.lookup("two", targets.TF).fun is base
    assert registry.lookup("three", targets.XLA) is None


def test_rules_for_some_dtypes_come_first(clean_registry):
    general = registry.rule("one")(lambda ctx, x: "general")
    for_complex = registry.decomposition("one", dtypes=dtypes.COMPLEX)(lambda x: x)
    found = registry.lookup("one", targets.TF, np.dtype(np.complex64))
    assert found.fun is for_complex and found.is_decomposition
    assert registry.lookup("one", targets.TF, np.dtype(np.float32)).fun is general
    assert registry.lookup("one", targets.TF).fun is general


def test_a_rule_of_the_target_comes_before_one_of_its_parent_for_the_dtype(clean_registry):
    registry.rule("one", dtypes=dtypes.FLOAT)(lambda ctx, x: "float")
    special = registry.rule("one", target=targets.XLA)(lambda ctx, x: "special")
    assert registry.lookup("one", targets.XLA, np.dtype(np.float32)).fun is special


def test_a_rule_for_some_dtypes_alone_covers_no_others(clean_registry):
    registry.rule("one", dtypes=dtypes.BOOL)(lambda ctx, x: x)
    assert registry.lookup("one", targets.TF, np.dtype(np.bool_)) is not None
    assert registry.lookup("one", targets.TF, np.dtype(np.int8)) is None


def test_two_rules_for_the_same_are_refused(clean_registry):
    registry.rule("one")(lambda ctx, x: x)
    registry.rule("one", target=targets.XLA)(lambda ctx, x: x)
    registry.rule("one", dtypes=dtypes.BOOL)(lambda ctx, x: x)
    with pytest.raises(ValueError, match="'one' has two rules for target 'tf'"):
        registry.decomposition("one")(lambda x: x)


def test_primitives_of_a_target(clean_registry):
    registry.rule("one")(lambda ctx, x: x)
    registry.rule("two", target=targets.XLA)(lambda ctx, x: x)
    assert registry.primitives(targets.TF) == {"one"}
    assert registry.primitives(targets.XLA) == {"one", "two"}


def test_every_primitive_has_a_rule_on_the_base_target():
    assert registry.primitives(targets.XLA) == registry.primitives(targets.TF)


def test_resolving_a_target():
    assert targets.resolve(True, None) is targets.XLA
    assert targets.resolve(False, None) is targets.TF
    assert targets.resolve(True, "tf") is targets.TF
    assert targets.resolve(True, targets.XLA) is targets.XLA


# Constants.


def test_constants_are_shared_in_a_graph():
    with tf.Graph().as_default() as graph:
        one = constants.constant([1, 2], np.int32)
        with tf.name_scope("elsewhere"):
            assert constants.constant(np.int32([1, 2])) is one
        assert constants.constant([1, 2], tf.int64) is not one
        assert constants.constant([[1, 2]], np.int32) is not one
        assert constants.integers([1, 2]) is one
    assert len(graph.get_operations()) == 3
    with tf.Graph().as_default():
        assert constants.constant([1, 2], np.int32) is not one


def test_signed_zeros_are_different_constants():
    zero, negative = constants.constant(np.float32(0.0)), constants.constant(np.float32(-0.0))
    assert not np.signbit(zero.numpy()) and np.signbit(negative.numpy())


def test_constants_made_in_a_loop_are_reachable_outside():
    @tf.function(autograph=False)
    def fun(x):
        (x,) = tf.while_loop(lambda x: x < 5, lambda x: [x + constants.constant(2, tf.int32)], [x])
        return x + constants.constant(2, tf.int32)

    assert fun(tf.constant(0)) == 8


def test_indices_beyond_int32():
    assert constants.integers([1, 2]).dtype == tf.int32
    assert constants.integers([]).dtype == tf.int32
    assert constants.integers([2**31]).dtype == tf.int64


def test_large_constants_are_shared_by_identity():
    large = np.arange(1 << 16, dtype=np.float32)
    with tf.Graph().as_default():
        assert constants.constant(large) is constants.constant(large)
        assert constants.constant(large) is not constants.constant(large.copy())


# Folding.


def test_operations_on_constants_are_folded():
    def fun(x):
        table = jnp.sort(jnp.sin(jnp.arange(10.0)))
        return x + table[3] * jax.random.uniform(jax.random.key(0), ())

    graph = graph_of(fun, np.float32(1))
    assert sorted(op_types(graph)) == ["AddV2", "Const"]
    x = np.float32(2)
    np.testing.assert_allclose(convert(fun)(x), fun(x), rtol=1e-6)


def test_large_results_are_not_folded():
    size = folding.BUDGET_BYTES // 4

    def fun(x, size):
        return x + lax.iota(np.float32, size)[-1] + jnp.ones(size).sum()

    within = op_types(graph_of(lambda x: fun(x, size), np.float32(1)))
    beyond = op_types(graph_of(lambda x: fun(x, size + 1), np.float32(1)))
    assert set(within) == {"AddV2", "Const"}
    assert len(set(beyond)) > 2


def test_scalars_of_every_dtype_are_folded():
    for dtype in (*dtypes.BOOL, *dtypes.INTEGER, *dtypes.FLOAT, *dtypes.COMPLEX):
        with jax.enable_x64(True):
            value = np.array(1, dtype)
            result = convert(lambda v=value: lax.reduce_max(jnp.stack([v, v]).real, (0,)))()
        assert result.dtype == np.real(value).dtype


def test_loops_are_never_folded():
    def count(n):
        return lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    for fun in (lambda: count(3), lambda: jax.jit(count)(3)):
        assert "While" in " ".join(op_types(graph_of(fun)))
        assert convert(fun)() == 3


def test_dimensions_are_never_folded():
    def fun(x):
        return x.sum() / x.shape[0] + jax.jit(lambda: jnp.float32(x.shape[0]))()

    fun_tf = tf.function(
        convert(fun, polymorphic_shapes="(b,)"),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    for size in (2, 5):
        assert fun_tf(np.ones(size, np.float32)) == 1 + size


def test_folded_results_belong_to_their_operands():
    """The same equation, in a body that is called with different constants."""

    @jax.jit
    def double(x):
        return x * 2

    assert convert(lambda: (double(1.0), double(2.0), double(1.0)))() == (2.0, 4.0, 2.0)


# Dimensions.


def test_sizes_of_symbolic_dimensions():
    b, c = jax.export.symbolic_shape("b, c")
    dimensions = dims.Dimensions({"b": tf.constant(7), "c": tf.constant(3)})
    cases = {
        b: 7,
        b + c: 10,
        2 * b - 3 * c + 1: 6,
        b * c: 21,
        b * b: 49,
        b // c: 2,
        b % c: 1,
        (b + 1) // (c - 1): 4,
        -b // c: -3,
    }
    for dim, expected in cases.items():
        assert dimensions.size(dim) == expected, dim
    assert dimensions.size(4) == 4
    np.testing.assert_array_equal(dimensions.shape([b, 5, b + c]), [7, 5, 10])
    assert dimensions.shape([2, 5]) is constants.integers([2, 5])


def test_maximum_and_minimum_of_dimensions():
    b, c = jax.export.symbolic_shape("b, c")
    dimensions = dims.Dimensions({"b": tf.constant(7), "c": tf.constant(3)})
    assert dimensions.size(jax.core.max_dim(b, c)) == 7
    assert dimensions.size(jax.core.min_dim(b, c)) == 3


def test_the_size_of_a_dimension_is_computed_once_per_graph():
    with tf.Graph().as_default() as graph:
        (b,) = jax.export.symbolic_shape("b")
        dimensions = dims.Dimensions({"b": tf.constant(7)})
        assert dimensions.size(2 * b) is dimensions.size(2 * b)

        @tf.function(autograph=False)
        def inner():
            return dimensions.size(2 * b)

        inner.get_concrete_function()
    assert len([op for op in graph.get_operations() if op.type == "Mul"]) == 1


def test_known_shapes_make_no_dynamic_ops():
    def fun(x):
        y = jnp.broadcast_to(x[None], (5, 2, 3)).reshape(10, 3)
        return jnp.concatenate([y, y * 2])[::2].T

    graph = graph_of(fun, np.ones((2, 3), np.float32))
    assert not {"Shape", "Pack", "Fill", "Range"} & set(op_types(graph))


# Dtypes, kernels and ops.


def test_dtypes_round_trip():
    for dtype in (*dtypes.BOOL, *dtypes.INTEGER, *dtypes.FLOAT, *dtypes.COMPLEX):
        assert dtypes.to_tf(np.dtype(dtype)).as_numpy_dtype == dtype
    assert dtypes.to_tf(dtypes.FLOAT0) == tf.int32
    assert dtypes.to_tf(jax.random.key(0).dtype) == tf.uint32


def test_wider_dtypes_hold_every_value():
    for dtype in tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32:
        wider = dtypes.wider(dtype)
        assert dtype == tf.bool or (wider.min <= dtype.min and dtype.max <= wider.max)
    assert dtypes.wider(tf.float64) is None and dtypes.wider(tf.uint64) is None


def test_carriers_have_the_same_width():
    for dtype in tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float16, tf.bfloat16:
        assert dtypes.carrier(dtype).size == dtype.size
    assert dtypes.carrier(tf.float32) is None


def test_kernels():
    assert kernels.supports("AddV2", tf.float32)
    assert not kernels.supports("AddV2", tf.bool)
    assert kernels.supports("SelectV2", tf.bool)  # No constraint at all.
    assert not kernels.supports("TopKV2", tf.uint16)  # The XLA kernel lacks it.


@pytest.mark.parametrize("mode", MODES)
def test_emit_computes_in_a_wider_dtype(mode):
    def fun(x):
        return emission.emit("Erf", x)

    if mode != "eager":
        fun = tf.function(fun, autograph=False, jit_compile=mode == "compiled")
    x = tf.constant([0.5, -1], tf.bfloat16)
    assert fun(x).dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(fun(x), tf.float32), [0.52, -0.84], rtol=1e-2)


def test_emit_computes_modulo_the_width():
    x = tf.constant([2**32 - 1, 5], tf.uint32)
    result = emission.emit("Cumsum", x, constants.constant(0, tf.int32), modular=True)
    assert result.dtype == tf.uint32
    np.testing.assert_array_equal(result, [2**32 - 1, 4])


def test_emit_keeps_results_of_other_dtypes():
    assert emission.emit("Equal", tf.constant([1]), tf.constant([1])).dtype == tf.bool


def test_emit_takes_the_names_of_python():
    x = tf.constant([[1, 2], [3, 4]])
    np.testing.assert_array_equal(emission.emit("Sum", x, constants.integers([0])), [4, 6])
    assert emission.emit("ExpandDims", x, constants.constant(0, tf.int32)).shape == (1, 2, 2)


def test_emit_of_an_unknown_op_or_dtype():
    with pytest.raises(ValueError, match="no op 'NoSuchOp'"):
        emission.emit("NoSuchOp", tf.constant(1))
    with pytest.raises(UnsupportedError, match="no Erf for complex64"):
        emission.emit("Erf", tf.constant(1, tf.complex64))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint32, np.uint64, np.bool_])
def test_move_keeps_the_bits(dtype):
    x = np.arange(6).astype(dtype).reshape(2, 3)
    y = emission.move("Transpose", tf.constant(x), constants.integers([1, 0]))
    np.testing.assert_array_equal(y.numpy().view(np.uint8), x.T.copy().view(np.uint8))


def test_casts_that_change_nothing_are_no_ops():
    x = tf.constant([1.0])
    assert emission.cast(x, tf.float32) is x
    assert emission.bitcast(x, tf.float32) is x


# The interpreter.


def long_body(x):
    for _ in range(20):
        x = jnp.sin(x) + 1
    return x


def test_a_body_that_is_called_often_becomes_one_function():
    body = jax.jit(long_body)

    def fun(x):
        return body(body(body(x)))

    graph = graph_of(fun, np.float32(1))
    calls = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
    assert len(calls) == 3
    assert len({op.get_attr("f").name for op in calls}) == 1
    assert "Sin" not in op_types(graph)
    x = np.float32(0.5)
    np.testing.assert_allclose(convert(fun)(x), fun(x), rtol=1e-6)


def test_a_body_that_is_called_once_is_lowered_in_place():
    graph = graph_of(lambda x: jax.jit(long_body)(x), np.float32(1))
    assert op_types(graph).count("Sin") == 20


def test_scopes_carry_the_names_of_jax():
    def layer(x):
        with jax.named_scope("layer"):
            return jnp.sin(x)

    def fun(x):
        with jax.named_scope("network"):
            x = layer(x)
            x = layer(x)
        return jnp.cos(x)

    operations = {op.type: op.name for op in graph_of(fun, np.float32(1)).get_operations()}
    assert re.fullmatch(r"network/layer/Sin(_\d+)?", operations["Sin"])
    assert operations["Cos"] == "Cos"


def test_scopes_of_jax_are_inside_those_of_tensorflow():
    fun_tf = convert(jax.named_call(jnp.sin, name="inner"), with_gradient=False)

    @tf.function(autograph=False)
    def fun(x):
        with tf.name_scope("outer"):
            return fun_tf(x)

    graph = fun.get_concrete_function(tf.TensorSpec([], tf.float32)).graph
    (name,) = [op.name for op in graph.get_operations() if op.type == "Sin"]
    assert name.startswith("outer/") and "inner" in name


def test_dead_code_is_removed():
    def fun(x):
        jnp.sin(x)
        return x + 1

    assert "Sin" not in op_types(graph_of(fun, np.float32(1)))


def test_a_rule_can_keep_constants():
    seen = []
    primitive = identity_primitive("keeps_constants")

    @registry.rule(primitive.name, keep_constants=True)
    def lower(ctx, x):
        seen.append(x)
        return tf.constant(x)

    assert convert(lambda: primitive.bind(jnp.ones((2,), np.float32)))() is not None
    assert isinstance(seen[0], np.ndarray)


def test_decompositions_are_traced_with_64_bits():
    primitive = identity_primitive("needs_64_bits")

    @registry.decomposition(primitive.name)
    def decompose(x):
        y = x.astype(np.float64) + np.float64(2**-40)
        return (y - x.astype(np.float64)).astype(np.float32)

    with jax.enable_x64(False):
        result = convert(primitive.bind)(np.float32([1]))
    np.testing.assert_array_equal(result, np.float32([2**-40]))


def test_dimensions_in_a_decomposition():
    primitive = identity_primitive("decomposed_with_dimensions")

    @registry.decomposition(primitive.name)
    def decompose(x):
        return jnp.broadcast_to(x.sum(), x.shape)

    fun_tf = convert(primitive.bind, polymorphic_shapes="(b,)")
    np.testing.assert_array_equal(fun_tf(np.float32([1, 2, 3])), [6, 6, 6])


# Error messages.


def failing(name, fail, target=targets.TF):
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
    assert re.search(r"test_framework\.py:\d+.*model", message)
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
    assert re.search(r"test_framework\.py:\d+.*model", message)
    assert "it is refused" in message


def test_a_wrong_dtype_of_a_rule_is_noticed():
    primitive = failing("gives_another_dtype", lambda ctx, x: tf.cast(x, tf.float64))
    with pytest.raises(AssertionError, match="float64, not float32"):
        convert(primitive.bind)(np.float32(1))


# The package.


def test_private_names_of_jax_are_used_in_one_module_alone():
    package = pathlib.Path(lowering.__file__).parent
    users = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"jax\._src|jax\.interpreters", path.read_text())
    ]
    assert users == ["jax_compat.py"]


def test_the_package_imports_nothing_else_of_the_project():
    package = pathlib.Path(lowering.__file__).parent
    for path in package.rglob("*.py"):
        imports = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert not {"harnesses", "limitations", "tools", "tests"} & set(imports), path


def test_importing_changes_no_setting_of_jax():
    code = "import jax, lowering; print(jax.config.jax_enable_x64, jax.default_backend())"
    root = pathlib.Path(lowering.__file__).parent.parent
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert result.stdout.split() == ["False", "cpu"]


def test_transformations_are_noticed():
    assert not jax_compat.in_transformation()
    assert jax.jit(lambda: jnp.bool_(jax_compat.in_transformation()))()
