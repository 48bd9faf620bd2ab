"""Windows, kernels and padding of symbolic size.

Each function is lowered once, with dimensions that TensorFlow does not know, and run at several
sizes. Every case is one that JAX can trace.
"""

import functools

import jax
import jax.extend.core.primitives as primitives
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.rules.symbolic import WAYS, Case, check, table

IMAGES = ("NHWC", "HWIO", "NHWC")


def _pool(init, combine, size, padding="VALID", strides=1, dilation=1):
    """A reduction over windows along the second of three axes, of a size that is a function."""

    def pool(x):
        window = (1, size(x.shape[1]), 1), (1, strides, 1), padding, None, (1, dilation, 1)
        return lax.reduce_window(x, np.array(init, x.dtype), combine, *window)

    return pool


def _identity(x):
    return x


def _half(x):
    return (x + 1) // 2


def _one_less(x):
    return x - 1


def _global(init, combine, padding):
    """A reduction over windows as large as the images."""

    def pool(x):
        size = (1, *x.shape[1:3], 1)
        return lax.reduce_window(x, np.array(init, x.dtype), combine, size, (1,) * 4, padding)

    return pool


def _gradient(fun):
    return jax.grad(lambda x: (fun(x) ** 2).sum())


def _windows():
    for name, init, combine in (
        ("sum", 0, lax.add),
        ("max", -np.inf, lax.max),
        ("min", np.inf, lax.min),
        ("product", 1, lax.mul),
        ("any", 0, lambda x, y: x + 2 * y),
    ):
        yield f"{name}_global", Case(_global(init, combine, "VALID"), ("b, h, w, 3",))
        padded = Case(_global(init, combine, "SAME"), ("b, h, w, 3",), (1, 4))
        yield f"{name}_global_same", padded
        pool = functools.partial(_pool, init, combine)
        for case, fun in (
            ("half", pool(_half)),
            ("padded", pool(_identity, ((0, 0), (1, 2), (0, 0)))),
            ("strided", pool(_half, "SAME", 2)),
            ("dilated", pool(_half, "SAME", 1, 2)),
        ):
            yield f"{name}_{case}", Case(fun, ("2, h, 3",))
        one_less = Case(pool(_one_less), ("2, h, 3",), (2, 5), constraints=("h >= 2",))
        yield f"{name}_one_less", one_less
    for dtype in (np.int32, np.uint8, jnp.bfloat16, np.float64, np.complex64):
        name = np.dtype(dtype).name
        pool = _pool(0, lax.add, _half)
        yield f"sum_{name}", Case(pool, ("2, h, 3",), dtype=dtype, x64=dtype == np.float64)
    for name, combine, init in (("and", lax.bitwise_and, True), ("or", lax.bitwise_or, False)):
        yield name, Case(_pool(init, combine, _half), ("2, h, 3",), dtype=np.bool_)
    for padding in ("VALID", "SAME"):
        for name, init, combine in (("sum", 0, lax.add), ("max", -np.inf, lax.max)):
            pool = _global(init, combine, padding)
            spec = ("b, h, w, 2",)
            yield f"gradient_{name}_{padding}", Case(_gradient(pool), spec, (1, 4))
            yield f"jvp_{name}_{padding}", Case(_jvp(pool), spec, (1, 4))
            fixed = functools.partial(_fixed_pool, init, combine, padding)
            yield f"gradient_{name}_{padding}_fixed", Case(_gradient(fixed), spec, (2, 3, 5))
    yield "second_gradient_max", Case(_gradient(_gradient(pool)), ("b, h, w, 2",), (1, 4))
    yield "select_and_scatter", Case(_select_and_scatter, ("2, h",))
    yield "strides", Case(_pool(0, lax.add, _half, strides=2), ("2, h, 3",))


def _jvp(fun):
    return lambda x: jax.jvp(fun, (x,), (x * 2,))[1]


def _fixed_pool(init, combine, padding, x):
    size = (1, 2, 2, 1)
    return lax.reduce_window(x, np.array(init, x.dtype), combine, size, size, padding)


def _select_and_scatter(x):
    """What no function of JAX uses: any functions choose and combine."""

    def traced(fun):
        return jax.make_jaxpr(fun)(np.float32(0), np.float32(0)).jaxpr

    size, strides, padding = (1, (x.shape[1] + 1) // 2), (1, 1), ((0, 0), (1, 0))
    return primitives.select_and_scatter_p.bind(
        x,
        lax.reduce_window(x, np.float32(0), lax.add, size, strides, padding),
        np.float32(1),
        select_jaxpr=traced(lambda a, b: a > b),
        select_consts=(),
        scatter_jaxpr=traced(lambda a, b: a * b + 1),
        scatter_consts=(),
        window_dimensions=size,
        window_strides=strides,
        padding=padding,
    )


def _padding():
    def pad(config):
        return lambda x: lax.pad(x, np.float32(1), [(0, 0, 0), config(x.shape[1])])

    for name, config in (
        ("low", lambda n: (n, 0, 0)),
        ("interior", lambda n: (1, 2, n)),
        ("interior_less_one", lambda n: (0, 0, n - 1)),
        ("cropped", lambda n: (1 - n, 2, 0)),
        ("any_sign", lambda n: (n // 2 - 2, 2, 1)),
        ("opposite_signs", lambda n: (n - 3, 3 - n, 0)),
        ("all_cropped", lambda n: (-3, 3, 0)),
    ):
        yield name, Case(pad(config), ("2, n",), (1, 2, 3, 7))


def _convolve(*, strides=(1, 1), padding="SAME", **params):
    return lambda x, y: lax.conv_general_dilated(
        x, y, strides, padding, dimension_numbers=IMAGES, **params
    )


def _gradients(fun):
    return jax.grad(lambda x, y: (abs(fun(x, y)) ** 2).sum(), (0, 1))


def _convolutions():
    for dtype in (np.float32, np.int32, np.complex64):
        for name, fun, *specs in (
            ("outputs", _convolve(), "2, 5, 5, 3", "2, 2, 3, o"),
            ("channels", _convolve(), "2, 5, 5, c", "2, 2, c, 4"),
            ("kernel", _convolve(padding="VALID"), "2, 8, 8, 3", "k, l, 3, 4"),
            ("kernel_same", _convolve(strides=(2, 2)), "b, 8, 8, 3", "k, l, 3, 4"),
            ("everything", _convolve(), "b, h, w, c", "k, k, c, o"),
            ("strided", _convolve(strides=(2, 2)), "b, h, w, 3", "3, 3, 3, o"),
            ("whole", _convolve(padding="VALID"), "b, h, w, 3", "h, w, 3, o"),
            ("dilated", _convolve(rhs_dilation=(2, 1)), "b, h, w, 3", "k, 3, 3, 4"),
            ("groups", _convolve(feature_group_count=2), "b, h, w, 4", "k, 3, 2, 4"),
            ("depthwise", _convolve(feature_group_count=4), "b, h, w, 4", "k, 3, 1, 4"),
        ):
            yield f"{name}_{np.dtype(dtype).name}", Case(fun, tuple(specs), dtype=dtype)
    specs = "b, h, w, c", "3, 3, 1, c"
    yield (
        "groups_are_channels",
        Case(lambda x, y: _convolve(feature_group_count=x.shape[3])(x, y), specs),
    )
    for strides in ((1, 1), (2, 2)):
        for groups, kernel in ((1, "3, 3, 3, 4"), (3, "3, 3, 1, 6")):
            for padding in ("SAME", "VALID"):
                fun = _convolve(strides=strides, padding=padding, feature_group_count=groups)
                case = Case(_gradients(fun), ("b, 7, 6, 3", kernel), (1, 3))
                yield f"gradients_{strides}_{groups}_{padding}", case
    # JAX traces no other gradients of convolutions of images, or by kernels, of symbolic size.
    yield "gradients_images", Case(_gradients(_convolve()), ("b, h, w, 3", "3, 3, 3, 4"), (1, 4))
    fun = _convolve()
    yield "gradients_channels", Case(_gradients(fun), ("b, 6, 6, c", "3, 3, c, o"), (1, 3))

    def solid(x, y):
        numbers = "NHWDC", "HWDIO", "NHWDC"
        return lax.conv_general_dilated(x, y, (1,) * 3, "SAME", dimension_numbers=numbers)

    yield "three_axes", Case(solid, ("b, h, 4, 4, 2", "k, 2, 2, 2, o"))


CASES = table(_windows, _padding, _convolutions)


@pytest.mark.parametrize("name", CASES)
def test_symbolic_windows(name):
    check(CASES[name], [*WAYS, ("portable", False)])
