"""Groups of nodes that the writer of ONNX models makes one, as authors of models write them."""

import collections

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.export import onnx, to_onnx
from lowering.export.entries import entry
from lowering.export.onnx import saving
from lowering.export.verification import verify
from lowering.targets import ONNX

package = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")
onnxruntime = pytest.importorskip("onnxruntime")

from lowering.export.onnx import fused_roundings, opsets  # noqa: E402  It needs the packages above.
from lowering.export.onnx import model as models  # noqa: E402

RNG = np.random.default_rng(0)
NEWEST = opsets.newest()


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


X, SCALE, BIAS = numbers(2, 3, 8), numbers(8), numbers(8)
WEIGHTS, OF_HEADS = numbers(8, 12), numbers(3, 4)


def exported(fun, *args, opset=NEWEST, **options):
    """The kinds of nodes of a model, which computes what JAX does and passes the checker."""
    program = entry(fun, args, ONNX, **options)
    model = models.model(program.concrete, opset, dims=program.sizes())
    written = saving.serialized(model)
    package.checker.check_model(package.load_from_string(written), full_check=True)
    verify("the model", program, onnx.run(written, program), None)
    return collections.Counter(
        node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph)
    )


def flax_norm(x):
    mean, squares = x.mean(-1, keepdims=True), (x * x).mean(-1, keepdims=True)
    variance = jnp.maximum(0, squares - mean * mean)
    return (x - mean) * (lax.rsqrt(variance + 1e-6) * SCALE) + BIAS


def equinox_norm(x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return SCALE * ((x - mean) * lax.rsqrt(variance + 1e-5)) + BIAS


def divided_norm(x):
    return SCALE * (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def standardized(x):
    return jax.nn.standardize(x, epsilon=1e-5)


def norm_of_two_axes(x):
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * X[:1]


@pytest.mark.parametrize("opset", [17, 18, NEWEST])
@pytest.mark.parametrize(
    "fun", [flax_norm, equinox_norm, divided_norm, standardized, norm_of_two_axes]
)
def test_layer_norms(fun, opset):
    assert exported(fun, X, opset=opset) == {"LayerNormalization": 1}


def test_a_layer_norm_of_large_numbers():
    assert exported(equinox_norm, X + 100) == {"LayerNormalization": 1}


RMS_NORMS = [
    lambda x: x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * (1 + SCALE),
    lambda x: x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6),
]


@pytest.mark.parametrize("fun", RMS_NORMS)
def test_rms_norms(fun):
    assert exported(fun, X, opset=23) == {"RMSNormalization": 1}
    assert exported(fun, X, opset=22)["RMSNormalization"] == 0


def gelu_by_hand(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))


ACTIVATIONS = {
    "Gelu": [
        jax.nn.gelu,
        lambda x: jax.nn.gelu(x, approximate=False),
        gelu_by_hand,
        lambda x: 0.5 * x * (1 + jnp.tanh(jnp.sqrt(2 / jnp.pi) * (x + 0.044715 * x**3))),
        lambda x: x * (1 + lax.erf(x / jnp.sqrt(2.0))) * 0.5,
    ],
    "HardSwish": [jax.nn.hard_swish, lambda x: x * jnp.clip(x + 3, 0, 6) / 6],
    "HardSigmoid": [jax.nn.hard_sigmoid],
}


@pytest.mark.parametrize(
    ("kind", "fun"), [(kind, fun) for kind, funs in ACTIVATIONS.items() for fun in funs]
)
def test_activations(kind, fun):
    assert exported(fun, 3 * X) == {kind: 1}


def test_a_part_that_is_needed_stays():
    def fun(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), x - mean

    assert exported(fun, X)["LayerNormalization"] == 0


def test_in_a_loop():
    def fun(x):
        return lax.fori_loop(0, 20, lambda i, y: flax_norm(jax.nn.gelu(y) + i), x)

    kinds = exported(fun, X)
    assert kinds["LayerNormalization"] == kinds["Gelu"] == kinds["Loop"] == 1


@pytest.mark.parametrize("shapes", [None, ["b, _, _"]])
def test_dense_layers_of_sequences(shapes):
    def fun(x):
        heads = jnp.einsum("bld,dhf->blhf", x, WEIGHTS.reshape(8, 3, 4)) + OF_HEADS
        return (jax.nn.relu(heads).reshape(*x.shape[:2], -1) @ WEIGHTS.T + BIAS) @ WEIGHTS

    kinds = exported(fun, X, polymorphic_shapes=shapes)
    assert kinds["Reshape"] <= 2
    assert kinds["MatMul"] == 3


QUERY, KEY, VALUE = numbers(2, 5, 2, 4), numbers(2, 6, 2, 4), numbers(2, 6, 2, 4)
MASK = RNG.uniform(size=(2, 1, 5, 6)) < 0.5
MASK[0, 0, 1] = False


def attend(q, k, v, mask=None, fill=-1e30):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q / np.sqrt(q.shape[-1]), k)
    scores = scores if mask is None else jnp.where(mask, scores, fill)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


ATTENTION = {
    "plain": (attend, QUERY, KEY, VALUE),
    "with a mask": (attend, QUERY, KEY, VALUE, MASK),
    "with the least number": (
        lambda *args: attend(*args, jnp.finfo(jnp.float32).min),
        *(QUERY, KEY, VALUE, MASK),
    ),
    "with infinity": (lambda *args: attend(*args, -jnp.inf), QUERY, KEY, VALUE, MASK[1:]),
    "causal": (
        lambda q, k, v: attend(q, k, v, jnp.tril(jnp.ones((5, 6), bool))),
        *(QUERY, KEY, VALUE),
    ),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    fun, *args = ATTENTION[name]
    assert exported(fun, *args, opset=23)["Attention"] == 1


def test_masks_that_leave_something():
    """A score that is not so small as to vanish is no mask."""
    fun = ATTENTION["with a mask"][0]
    args = QUERY, KEY, VALUE, MASK
    assert exported(lambda *args: fun(*args, -5.0), *args, opset=23)["Attention"] == 0


def test_attention_of_batches_of_any_size():
    shapes = ["b, _, _, _"] * 3
    kinds = exported(attend, QUERY, KEY, VALUE, polymorphic_shapes=shapes, opset=23)
    assert kinds["Attention"] == 1


def test_a_product_of_a_matrix_of_heads():
    def fun(x):
        return (x.reshape(2, 24) @ jnp.tile(WEIGHTS, (3, 1))).reshape(2, 3, 4)

    assert exported(fun, X) == {"Reshape": 2, "MatMul": 1}


def padded_twice(x):
    once = jnp.pad(x, ((0, 0), (0, 0), (1, 1)), "wrap")
    return once, jnp.pad(once, ((0, 0), (1, 1), (0, 0)), "wrap")


PADS = {
    **{
        f"{mode} by {widths}": (lambda x, m=mode, w=widths: jnp.pad(x, w, m), {"Pad": 1})
        for mode in ("edge", "wrap", "reflect")
        for widths in (1, (1, 0), ((0, 0), (2, 1), (0, 3)))
    },
    "wrap by more than there is": (
        lambda x: jnp.pad(x, ((0, 0), (7, 2), (9, 0)), "wrap"), {"Pad": 1}
    ),
    "one end again": (lambda x: jnp.concatenate([x, x[:, :, -1:]], 2), {"Pad": 1}),
    "symmetric by one": (lambda x: jnp.pad(x, 1, "symmetric"), {"Pad": 1}),
    "of short integers": (lambda x: jnp.pad(x.astype("int16"), 1, "wrap"), {"Pad": 0}),
    "of one axis twice": (
        lambda x: jnp.pad(jnp.pad(x, (1, 0), "wrap"), (1, 0), "wrap"), {"Pad": 2}
    ),
    "of edges twice": (lambda x: jnp.pad(jnp.pad(x, (1, 0), "edge"), (1, 0), "edge"), {"Pad": 1}),
    "in two modes": (lambda x: jnp.pad(jnp.pad(x, 1, "wrap"), 1, "edge"), {"Pad": 2}),
    "of which all is needed": (padded_twice, {"Pad": 2}),
    "of other elements": (lambda x: jnp.concatenate([x[:, ::2], x], 1), {"Pad": 0}),
    "of another axis": (lambda x: jnp.concatenate([x[:, :, 7:].repeat(8, 2), x], 1), {"Pad": 0}),
    "of another array": (lambda x: jnp.concatenate([jnp.sin(x)[:, :1], x], 1), {"Pad": 0}),
    "of a copy": (lambda x: jnp.concatenate([x, x], 1), {"Pad": 0}),
}  # fmt: skip


@pytest.mark.parametrize("case", PADS)
def test_pads(case):
    fun, expected = PADS[case]
    kinds = exported(fun, X)
    assert kinds["Pad"] == expected["Pad"]
    assert not expected["Pad"] or kinds.total() == expected["Pad"]


def test_pads_of_older_opsets():
    for mode, count in {"edge": 1, "wrap": 0}.items():
        assert (
            exported(lambda x, m=mode: jnp.pad(x, ((0, 0), (2, 2), (0, 0)), m), X, opset=17)["Pad"]
            == count
        )


def test_pads_of_batches_of_any_size():
    def fun(x):
        return jnp.pad(x, ((0, 0), (2, 2), (1, 1)), "edge")

    assert exported(fun, X, polymorphic_shapes=["b, _, _"]) == {"Pad": 1}


INDICES = {
    "a vector": (lambda x, i: x[i], {"Clip": 1, "Gather": 1}),
    "along another axis": (lambda x, i: x[:, i], {"Clip": 1, "Gather": 1}),
    "of two arrays": (lambda x, i: (x[i], jnp.sin(x)[i]), {"Clip": 1, "Gather": 2, "Sin": 1}),
    "with what is beyond": (lambda x, i: jnp.take(x, i, 0, fill_value=1), None),
    "that are needed": (lambda x, i: (x[i], jnp.where(i < 0, i + 2, i)), None),
}


@pytest.mark.parametrize("case", INDICES)
def test_indices_from_the_end(case):
    fun, expected = INDICES[case]
    for index in (np.int32([-1, 0, 1, -2, 5, -7]), np.int32(-1)):
        kinds = exported(fun, X, index)
        assert kinds == expected or expected is None


def test_indices_from_another_end():
    """A size that is not that of the axis is a number like others."""
    assert exported(lambda x, i: x[jnp.where(i < 0, i + 1, i)], X, np.int32(-1))["Where"] == 1


@pytest.mark.parametrize("rows", [8, 2000])
def test_weights_that_are_joined(rows):
    """Each number is stored once, whether or not the parts are used by themselves."""
    first, second, x = numbers(rows, 70), numbers(rows, 90), numbers(2, rows)

    def fun(params, x):
        return x @ jnp.concatenate(params, 1)

    def with_parts(params, x):
        return x @ jnp.concatenate(params, 1), x @ params[0]

    for function, count in ((fun, 1), (with_parts, 3)):
        model = package.load_from_string(to_onnx(function, (x,), params=[first, second]))
        assert len(model.graph.node) == count
        sizes = [np.prod(x.dims) for x in model.graph.initializer]
        assert sum(sizes) == first.size + second.size


IMAGES = numbers(2, 3, 5, 8)


def group_norm(x, groups=4):
    grouped = x.reshape(*x.shape[:3], groups, -1)
    mean, variance = (f(grouped, (1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
    return ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * SCALE + BIAS


def flax_group_norm(x, **options):
    norm = nn.GroupNorm(4, **options)
    params = norm.init(jax.random.key(0), x)
    return norm.apply(jax.tree.map(lambda p: p + SCALE, params), x)


@pytest.mark.parametrize("images", [IMAGES, IMAGES[:1], 3 + IMAGES])
@pytest.mark.parametrize("fun", [group_norm, flax_group_norm])
def test_group_norms(fun, images):
    kinds = exported(fun, images)
    expected = {"Transpose": 2, "Reshape": 2, "InstanceNormalization": 1, "Mul": 1, "Add": 1}
    assert kinds == expected


def test_reductions_of_the_oldest_opset():
    """Their axes are attributes there, but not until groups of nodes have been found."""
    assert exported(group_norm, IMAGES, opset=17)["InstanceNormalization"] == 1

    def loop(x):
        return lax.fori_loop(0, x.shape[0], lambda i, y: y * x.mean((1, 2))[i] + x.max() - i, x)

    kinds = exported(loop, X, opset=17)
    assert kinds["ReduceMax"] == kinds["ReduceMean"] == 1


class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.relu(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
        return x


@pytest.mark.parametrize("images", [IMAGES, IMAGES[:1]])
def test_group_norms_of_convolutions(images):
    """Nothing is transposed between the layers for one image."""
    network = Convolutions()
    params = jax.tree.map(lambda p: p + 0.1, network.init(jax.random.key(0), images))
    kinds = exported(lambda x: network.apply(params, x), images)
    assert kinds["InstanceNormalization"] == 2
    assert kinds["ReduceMean"] == 0
    assert len(images) > 1 or kinds["Transpose"] == 2


def test_group_norms_without_parameters():
    def fun(x):
        return flax_group_norm(x, use_bias=False, use_scale=False)

    assert exported(fun, IMAGES).keys() >= {"ReduceMean"}
    assert exported(lambda x: flax_group_norm(x, use_bias=False), IMAGES)["Mul"] == 1


def test_group_norms_of_batches_of_any_size():
    for fun in (group_norm, flax_group_norm):
        exported(fun, IMAGES, polymorphic_shapes=["b, _, _, _"])


@pytest.mark.parametrize("axes", [(1, 2), (2, 4), (1, 2, 3)])
def test_norms_of_other_axes_than_those_of_groups(axes):
    def fun(x):
        grouped = x.reshape(*x.shape[:3], 4, -1)
        mean, variance = (f(grouped, axes, keepdims=True) for f in (jnp.mean, jnp.var))
        return ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)

    assert exported(fun, IMAGES)["InstanceNormalization"] == 0


def test_elus_keep_digits_of_small_numbers():
    x = -np.logspace(-30, 2, 200).astype(np.float32)
    program = entry(jax.nn.selu, (x,), ONNX)
    model = models.model(program.concrete, NEWEST)
    (found,) = onnx.run(saving.serialized(model), program).values()
    np.testing.assert_allclose(found, jax.nn.selu(x), 2e-6)
    assert len(model.graph) < 10


def test_norms_of_groups_followed_by_another_shape():
    def fun(x):
        groups = x.reshape(2, 4, 4, 2, 4)
        mean = groups.mean((1, 2, 4), keepdims=True)
        variance = groups.var((1, 2, 4), keepdims=True)
        return ((groups - mean) * lax.rsqrt(variance + 1e-5)).reshape(2, 16, 8) * SCALE

    assert exported(fun, numbers(2, 4, 4, 8))["InstanceNormalization"] == 1


def test_indices_that_are_doubled_are_those_of_others():
    exported(lambda x, i: jnp.take(x, jnp.where(i < 0, i + i, i), 0), X[0], np.array([0, -1]))


def attention(x, mask, scale):
    q, k, v = (x * n for n in (1, 2, 3))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * scale
    scores = jnp.where(mask, scores, -1e30)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def test_a_mask_of_attention_that_is_no_node_is_that_of_others():
    def fun(x, scales):
        mask = jnp.tril(jnp.ones((3, 3), bool))
        return attention(attention(x, mask, scales), mask, 0.5)

    exported(fun, numbers(2, 3, 2, 4), numbers(2, 1, 1))


def test_scales_before_queries():
    def fun(q, k, v):
        scores = jnp.einsum("bthd,bshd->bhts", lax.mul(np.full(q.shape, 0.5, np.float32), q), k)
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)

    exported(fun, *(numbers(2, 3, 2, 4) for _ in range(3)))


def test_values_of_fusions_have_shapes():
    """What is made in the place of others can be part of further groups."""

    def fun(x):
        x = lax.conv_transpose(x, numbers(3, 3, 4, 8), (2, 2), "SAME") + BIAS
        return jax.nn.gelu(nn.GroupNorm(2, use_scale=False, use_bias=False).apply({}, x))

    program = entry(fun, [numbers(2, 4, 4, 4)], ONNX)
    model = models.model(program.concrete, NEWEST, dims=program.sizes())
    assert all(x.shape is not None and x.dtype for node in model.graph for x in node.outputs)


_ROWS = np.array([[3, 1, np.nan, 1], [-np.inf, 0, np.inf, 3]], np.float32)
_PLACES = np.array([[3, 0, 0], [-1, 2, 1]], np.int32)


@pytest.mark.parametrize(
    ("fun", "args", "most"),
    [
        (jnp.sort, [_ROWS], 9),
        (jnp.argsort, [_ROWS], 10),
        (lambda x: lax.top_k(x, 2), [_ROWS], 5),
        (jnp.nan_to_num, [_ROWS], 6),
        (lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"), [_ROWS, _PLACES], 2),
        (lambda x, i: jnp.take(x, i, 1, mode="clip"), [_ROWS, np.array([-5, -4, -1, 3, 4])], 2),
        (jnp.sort, [_PLACES], 3),
        (lambda i: i % 3, [np.arange(-5, 5, dtype=np.int32)], 4),
        (lambda i: i % 3, [np.array([-(2**31), -(2**31) + 1, 2**31 - 1], np.int32)], 4),
        (lambda x: jnp.asarray(X[0])[x.argmax(0)], [numbers(3, 4)], 2),
        (lambda x: x.sum(0), [_PLACES], 2),
        (lambda x: x.sum((0, 1)), [_PLACES.reshape(1, 2, 3)], 3),
        (lambda x: x.sum(1), [_PLACES], 2),
    ],
)
def test_orders_and_places_have_few_nodes(fun, args, most):
    assert exported(fun, *args).total() <= most


@pytest.mark.parametrize("dtype", fused_roundings.DTYPES, ids=str)
def test_roundings_to_float8(dtype):
    """All numbers of 16 bits, those between two of float8, and their neighbours, bit by bit."""

    def fun(x):
        return lax.convert_element_type(lax.convert_element_type(x, dtype), np.float32)

    words = np.arange(2**16, dtype=np.uint16)
    of_8_bits = np.arange(2**8, dtype=np.uint8).view(dtype).astype(np.float32)
    finite = np.unique(of_8_bits[np.isfinite(of_8_bits)])
    between = np.append((finite[1:] + finite[:-1]) / 2, finite.max() * np.linspace(1, 2, 257))
    up, down = (np.nextafter(np.float32(between), np.float32(to)) for to in (np.inf, -np.inf))
    several = (words.view(np.float16), words.view(jnp.bfloat16), of_8_bits, between, up, down)
    x = np.concatenate([part.astype(np.float32) for part in several])
    expected = np.asarray(jax.jit(fun)(x))
    model = to_onnx(fun, (x,))
    kinds = [node.op_type for node in package.load_from_string(model).graph.node]
    assert kinds[-2:] == ["Cast", "Cast"] and len(kinds) <= 6
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (actual,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(
        actual[is_number].view(np.int32), expected[is_number].view(np.int32)
    )


def test_roundings_to_float8_in_an_old_opset():
    """Casts came with version 19."""
    x = numbers(100)
    model = to_onnx(lambda x: x.astype("float8_e5m2").astype(x.dtype), (x,), opset=18)
    assert "Cast" not in [node.op_type for node in package.load_from_string(model).graph.node]
