"""Calls of JAX's functions become one op or few, and give the same in all runtimes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering.export import runtimes
from lowering.export.flat import flat_entry
from lowering.passes import pipeline
from lowering.targets import ONNX, PORTABLE, TF, TFJS, TFLITE, Mode
from tests.passes.meanings import MEANINGS, assert_means
from tests.passes.programs import primitives, traced

IMAGES = np.random.default_rng(0).normal(size=(2, 4, 6, 3)).astype(np.float32)
SORTED = np.array([-1, 0, 0, 0.5, 2], np.float32)
X = np.array([[-2, -1, -0.0, 0.3], [0.5, 1.9, 2, np.inf]], np.float32)


def resize(shape, method, **options):
    return functools.partial(jax.image.resize, shape=shape, method=method, **options)


RESIZED = {
    "twice as large": (resize((2, 8, 12, 3), "nearest"), IMAGES),
    "columns alone": (resize((2, 4, 18, 3), "nearest"), IMAGES),
    "linear": (resize((2, 8, 12, 3), "linear"), IMAGES),
    "linear, odd sizes": (resize((2, 7, 11, 3), "bilinear"), IMAGES),
    "linear, rows alone": (resize((2, 9, 6, 3), "linear", antialias=False), IMAGES),
    "linear, downsampled": (resize((2, 3, 2, 3), "linear", antialias=False), IMAGES),
    "linear, up and down": (resize((2, 8, 5, 3), "linear", antialias=False), IMAGES),
    "features first": (resize((2, 4, 9, 7), "linear"), IMAGES),
    "a matrix": (resize((7, 9), "linear"), IMAGES[0, ..., 0]),
    "a signal": (resize((2, 4, 6, 12), "nearest"), IMAGES),
    "cubic": (resize((2, 8, 24, 3), "cubic"), IMAGES),
    "cubic, rows alone": (resize((2, 16, 6, 3), "bicubic", antialias=False), IMAGES),
    "from one pixel": (resize((2, 3, 6, 3), "linear"), IMAGES[:, :1]),
}
OTHERS = {
    "antialiased": (resize((2, 3, 2, 3), "linear"), IMAGES),
    "cubic, other places": (resize((2, 12, 18, 3), "cubic"), IMAGES),
    "cubic, downsampled": (resize((2, 2, 3, 3), "cubic"), IMAGES),
    "nearest, broken factor": (resize((2, 6, 6, 3), "nearest"), IMAGES),
    "axes apart": (resize((4, 4, 12, 3), "linear"), IMAGES),
    "float16": (resize((2, 8, 12, 3), "linear"), IMAGES.astype(np.float16)),
    "of another precision": (
        resize((2, 8, 12, 3), "linear", precision=jax.lax.Precision.DEFAULT), IMAGES
    ),
    "mapped": (jax.vmap(resize((8, 12, 3), "linear")), IMAGES),
    "differentiated": (jax.grad(lambda x: resize((2, 8, 12, 3), "linear")(x).sum()), IMAGES),
}  # fmt: skip


def lowered(fun, *args, target=PORTABLE):
    jaxpr, functions = pipeline.whole_program(traced(fun, *args), target)
    return pipeline.optimized(jaxpr, Mode.GRAPH, functions, target)


@pytest.mark.parametrize("case", RESIZED)
def test_images_are_resized_by_one_op(case):
    fun, x = RESIZED[case]
    jaxpr = lowered(fun, x)
    assert set(primitives(jaxpr)) - {"reshape"} == {"resize_images"}
    assert_means(jaxpr, fun, x)
    assert not MEANINGS.keys() & set(primitives(lowered(fun, x, target=TF)))


@pytest.mark.parametrize("target", [TFLITE, ONNX, TFJS], ids=lambda target: target.name)
def test_runtimes_resize_as_jax_does(target):
    x = np.asarray(IMAGES)

    def all_of_them(x):
        of_images = [fun for fun, arg in RESIZED.values() if arg is IMAGES]
        return [fun(x) for fun in of_images]

    converted = lowering.convert(all_of_them, target=target.name, with_gradient=False)
    entry = flat_entry(converted, [x])
    for found in runtimes.run(target.name, entry).values():
        for actual, expected in zip(found, all_of_them(x), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", OTHERS)
def test_images_that_no_op_resizes(case):
    fun, x = OTHERS[case]
    assert "resize_images" not in primitives(lowered(fun, x))


def test_another_function_of_the_name():
    def _resize(x):
        return jnp.concatenate([x, 2 * x], 1)

    jaxpr = lowered(jax.jit(_resize), IMAGES)
    assert_means(jaxpr, _resize, IMAGES)
    assert "resize_images" not in primitives(jaxpr)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searches_in_few_numbers_are_found(side):
    fun = functools.partial(jnp.searchsorted, side=side)
    jaxpr = lowered(fun, SORTED, X)
    assert "search" in primitives(jaxpr)
    assert_means(jaxpr, fun, SORTED, X)


# What JAX finds among numbers that are not sorted depends on how it searches.
TABLES = {
    "sorted": np.float32([-1, 0, 0, 2, 5]),
    "sorted, with NaN": np.float32([1, 2, 3, np.nan, np.nan]),
    "not sorted": np.float32([3, 1, np.nan, 2, 0, -1]),
    "of integers": np.int32([-3, 0, 0, 7]),
}


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "argument"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("table", TABLES)
def test_places_in_tables(table, side, is_known):
    """Known tables that are sorted are compared, without a loop; NaN is behind all numbers."""
    x = TABLES[table]
    y = np.float32([np.nan, 0, 2, -7, 2.5, np.inf, -np.inf]) if x.dtype.kind == "f" else x + 1

    def search(x, y):
        return jnp.searchsorted(x, y, side=side)

    fun, args = (lambda y: search(x, y), (y,)) if is_known else (search, (x, y))
    converted = tf.function(lowering.convert(fun, target="portable"), autograph=False)
    np.testing.assert_array_equal(converted(*args), search(x, y))
    ops = {op.type for op in converted.get_concrete_function(*args).graph.get_operations()}
    assert ("Sum" in ops) == (is_known and table != "not sorted")


def test_searches_in_many_numbers_halve():
    many = np.sort(np.random.default_rng(0).normal(size=1000)).astype(np.float32)
    jaxpr = lowered(jnp.searchsorted, many, X)
    assert_means(jaxpr, jnp.searchsorted, many, X)
    assert not any(x.aval.size >= X.size * many.size for e in jaxpr.eqns for x in e.outvars)


def test_integers_are_searched_for():
    args = np.arange(0, 20, 3, dtype=np.int32), np.array([-1, 0, 5, 18, 30], np.int32)
    assert_means(lowered(jnp.searchsorted, *args), jnp.searchsorted, *args)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
@pytest.mark.parametrize("method", ["scan", "compare_all"])
def test_mapped_searches(axes, method):
    """Each element of a batch may be searched in other numbers."""
    tables, x = np.stack([SORTED, SORTED - 1, 2 * SORTED]), np.stack([X, X + 1, -X])
    args = [y if axis == 0 else y[0] for y, axis in zip((tables, x), axes, strict=True)]
    fun = jax.vmap(functools.partial(jnp.searchsorted, method=method), axes)
    jaxpr = lowered(fun, *args)
    assert_means(jaxpr, fun, *args)
    # Zeros and NaN are of one kind already.
    assert "select_n" not in primitives(jaxpr) or method == "scan"
    converted = tf.function(lowering.convert(fun, target="portable"), autograph=False)
    np.testing.assert_array_equal(converted(*args), fun(*args))


def test_any_batch_is_resized():
    fun = resize_to_twice
    converted = lowering.convert(
        fun, target="onnx", with_gradient=False, polymorphic_shapes=["b, ..."]
    )
    np.testing.assert_allclose(converted(IMAGES), fun(IMAGES), rtol=1e-5, atol=1e-6)


def resize_to_twice(x):
    return jax.image.resize(x, (x.shape[0], 8, 12, 3), "linear")
