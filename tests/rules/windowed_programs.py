"""Random programs around one windowed op: what stands before and after it is what models have.

As a script it runs programs in a graph, saved and loaded, and frozen, and compares them with JAX:

    python -m tests.rules.windowed_programs FIRST LAST

TensorFlow's optimizer may end the process, so the name of each program is printed before it runs.
"""

import functools
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import lowering

_DTYPES = (np.float32, np.float32, np.float32, ml_dtypes.bfloat16, np.float16, np.float64, np.int32)
_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "elu": jax.nn.elu,
    "leaky_relu": jax.nn.leaky_relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "exact_gelu": functools.partial(jax.nn.gelu, approximate=False),
    "silu": jax.nn.silu,
}
_OPS = (
    *("conv", "depthwise", "groups", "transpose", "input_gradient", "filter_gradient"),
    *("max_pool", "min_pool", "avg_pool", "sum_pool", "max_pool_gradient", "avg_pool_gradient"),
)
_AFTER = ("bias", "activation", "norm", "branch", "scale", "pool", "mean")

# How many programs have each op with each of what may come after it, once.
ROUND = len(_OPS) * len(_AFTER)
_BEFORE = ("nothing", "nothing", "pad", "activation", "norm", "reshape")
_SPATIAL = "HWD"


class Program(NamedTuple):
    """A function of variables and images.

    Attributes:
      name: what it does.
      fun: the function.
      weights: its variables.
      x: its images.
      polymorphic_shapes: of the images.
    """

    name: str
    fun: Callable[..., Any]
    weights: list[np.ndarray]
    x: np.ndarray
    polymorphic_shapes: str | None


class _Builder:
    """Makes functions of images, with their weights in the order in which they are used."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.rank = int(self.pick((1, 2, 2, 2, 2, 3)))
        self.dtype = self.pick(_DTYPES)
        self.channels_first = bool(self.rng.random() < 0.2)
        self.weights: list[np.ndarray] = []
        self.words: list[str] = [f"{self.rank}d {np.dtype(self.dtype).name}"]

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def weight(self, *shape, positive=False):
        """A new weight; returns its place among the weights."""
        if self.dtype == np.int32:
            x = self.rng.integers(-2, 3, shape)
        else:
            x = self.rng.uniform(0.5 if positive else -1, 1, shape)
        self.weights.append(np.asarray(x, self.dtype))
        return len(self.weights) - 1

    def by_feature(self, shape, *, positive=False):
        """A weight for each feature, which broadcasts with images of a shape."""
        axis = 1 if self.channels_first else len(shape) - 1
        dims = [d if i == axis else 1 for i, d in enumerate(shape)]
        return self.weight(*dims, positive=positive)

    def each(self, *options):
        """One of the options for each spatial axis, mostly the same for all."""
        value = self.pick(options)
        is_one = self.rng.random() < 0.7
        return tuple(value if is_one else self.pick(options) for _ in range(self.rank))

    def padding(self):
        padding = self.pick(("SAME", "SAME", "VALID", "each", "causal"))
        if padding == "each":
            return self.each((1, 1), (0, 1), (2, 1), (0, 0))
        return self.each((2, 0)) if padding == "causal" else padding

    def numbers(self):
        spatial = _SPATIAL[: self.rank]
        images = f"NC{spatial}" if self.channels_first else f"N{spatial}C"
        return images, f"{spatial}IO", images

    def features(self, shape):
        return shape[1 if self.channels_first else -1]

    def add(self, word):
        self.words.append(word)

    def activation(self, shape):
        name = "relu" if self.dtype == np.int32 else self.pick(tuple(_ACTIVATIONS))
        self.add(name)
        return lambda x, weights: _ACTIVATIONS[name](x)

    def nothing(self, shape):
        return lambda x, weights: x

    def reshape(self, shape):
        self.add("reshape")
        dims = tuple(shape[1:])
        return lambda x, weights: x.reshape(x.shape[0], -1).reshape(x.shape[0], *dims)

    def pad(self, shape):
        axes = [(0, 0), *self.each((1, 1), (0, 2), (1, 0)), (0, 0)]
        if self.channels_first:
            axes = [axes[0], axes[-1], *axes[1:-1]]
        self.add(f"pad {axes}")
        return lambda x, weights: jnp.pad(x, axes)

    def bias(self, shape):
        place = self.by_feature(shape)
        self.add("bias")
        return lambda x, weights: x + weights[place]

    def scale(self, shape):
        place = self.by_feature(shape)
        self.add("scale")
        return lambda x, weights: x * weights[place]

    def norm(self, shape):
        if self.dtype == np.int32:
            return self.bias(shape)
        mean, scale, offset = (self.by_feature(shape) for _ in range(3))
        variance = self.by_feature(shape, positive=True)
        self.add("norm")

        def norm(x, weights):
            factor = lax.rsqrt(weights[variance] + np.array(1e-3, x.dtype)) * weights[scale]
            return (x - weights[mean]) * factor + weights[offset]

        return norm

    def branch(self, shape):
        place = self.weight(1, *shape[1:])
        self.add("branch")
        return lambda x, weights: x + weights[place]

    def mean(self, shape):
        self.add("mean")
        axes = range(2, 2 + self.rank) if self.channels_first else range(1, 1 + self.rank)
        return lambda x, weights: x.sum(tuple(axes), keepdims=True, dtype=x.dtype)

    def pool(self, shape):
        return self.window_op(shape, self.pick(("max_pool", "avg_pool", "sum_pool")))

    def window_op(self, shape, kind):
        size, strides, padding = self.each(2, 3), self.each(1, 2), self.padding()
        dilation = self.each(1, 2) if kind == "max_pool" and self.rng.random() < 0.2 else 1
        dims, steps = (1, *size, 1), (1, *strides, 1)
        dilations = (1, *dilation, 1) if dilation != 1 else (1,) * (self.rank + 2)
        amounts = padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
        if self.channels_first:
            dims, steps, dilations = ((v[0], v[-1], *v[1:-1]) for v in (dims, steps, dilations))
            if not isinstance(amounts, str):
                amounts = (amounts[0], amounts[-1], *amounts[1:-1])
        self.add(f"{kind} {dims} {steps} {amounts} {dilations}")
        is_int = self.dtype == np.int32
        lowest = np.iinfo(np.int32).min if is_int else -np.inf
        highest = np.iinfo(np.int32).max if is_int else np.inf

        def reduce(x):
            init, combine = {
                "max_pool": (lowest, lax.max),
                "min_pool": (highest, lax.min),
                "avg_pool": (0, lax.add),
                "sum_pool": (0, lax.add),
            }[kind.removesuffix("_gradient")]
            window = dims, steps, amounts, None, dilations
            y = lax.reduce_window(x, np.array(init, x.dtype), combine, *window)
            return y / np.array(np.prod(size), x.dtype) if "avg" in kind and not is_int else y

        if not kind.endswith("_gradient") or is_int:
            return lambda x, weights: reduce(x)
        return lambda x, weights: jax.grad(lambda x: (reduce(x) ** 2).sum())(x)

    def op(self, shape, kind):
        """The windowed op itself."""
        if "pool" in kind:
            return self.window_op(shape, kind)
        inputs = self.features(shape)
        groups = {"depthwise": inputs, "groups": 2 - inputs % 2}.get(kind, 1)
        outputs = inputs * self.pick((1, 1, 2)) if kind == "depthwise" else self.pick((4, 6))
        sizes, strides, padding = self.each(1, 2, 3, 3), self.each(1, 1, 2), self.padding()
        place = self.weight(*sizes, inputs // groups, outputs)
        dilation = self.each(1, 2) if self.rng.random() < 0.3 else (1,) * self.rank
        numbers = self.numbers()
        self.add(f"{kind} {sizes} {strides} {padding} dilation={dilation} {numbers[0]}")

        if kind == "transpose":
            is_string = isinstance(padding, str)
            return lambda x, weights: lax.conv_transpose(
                x,
                weights[place],
                strides,
                padding if is_string else "SAME",
                dimension_numbers=numbers,
            )

        def convolve(x, weight):
            return lax.conv_general_dilated(
                x,
                weight,
                strides,
                padding,
                rhs_dilation=dilation,
                dimension_numbers=numbers,
                feature_group_count=groups,
            )

        if kind == "input_gradient" and self.dtype != np.int32:
            return lambda x, weights: jax.grad(lambda x: (convolve(x, weights[place]) ** 2).sum())(
                x
            )
        if kind == "filter_gradient" and self.dtype != np.int32:

            def filter_gradient(x, weights):
                def loss(w):
                    # The gradient is a sum over all images, which would overflow in float16.
                    return (convolve(x, w) ** 2).sum() * np.array(2.0**-10, x.dtype)

                gradient = jax.grad(loss)(weights[place])
                return convolve(x, gradient)

            return filter_gradient
        return lambda x, weights: convolve(x, weights[place])


def program(seed: int) -> Program:
    """The program of a seed."""
    builder = _Builder(seed)
    spatial = [8, 7, 6][: builder.rank]
    features = builder.pick((2, 4))
    shape = [3, features, *spatial] if builder.channels_first else [3, *spatial, features]
    x = builder.weights.pop(builder.weight(*shape))
    steps: list[Callable[..., Any]] = []

    def append(make):
        step = make(shape)
        steps.append(step)
        struct = jax.ShapeDtypeStruct(tuple(shape), x.dtype)
        shape[:] = jax.eval_shape(step, struct, builder.weights).shape

    with jax.enable_x64(True):
        append(getattr(builder, builder.pick(_BEFORE)))
        append(functools.partial(builder.op, kind=_OPS[seed % len(_OPS)]))
        append(getattr(builder, _AFTER[seed // len(_OPS) % len(_AFTER)]))
        for _ in range(builder.rng.integers(3)):
            append(getattr(builder, builder.pick(_AFTER)))

    def fun(x, weights):
        for step in steps:
            x = step(x, weights)
        return x

    spec = builder.pick((None, "b, ..."))
    if spec:
        builder.add("symbolic batch")
    return Program(f"{seed}: {', '.join(builder.words)}", fun, builder.weights, x, spec)


def _module(case):
    """A module whose method `run` is the conversion."""
    module = tf.Module()
    module.weights = [tf.Variable(w) for w in case.weights]
    converted = lowering.convert(
        case.fun, polymorphic_shapes=(case.polymorphic_shapes, None), with_gradient=False
    )
    batch = None if case.polymorphic_shapes else case.x.shape[0]
    spec = tf.TensorSpec([batch, *case.x.shape[1:]], case.x.dtype)
    module.run = tf.function(
        lambda x: converted(x, list(module.weights)), autograph=False, input_signature=[spec]
    )
    return module


def _check(how, actual, expected):
    actual = np.asarray(actual)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), how
    is_int = expected.dtype.kind == "i"
    eps = 0 if is_int else float(ml_dtypes.finfo(expected.dtype).eps)
    # Sums in another order may stay below what overflows; all that is larger counts as the largest.
    largest = np.inf if is_int else float(ml_dtypes.finfo(expected.dtype).max)
    actual, expected = (x.astype(np.float64).clip(-largest, largest) for x in (actual, expected))
    tolerance = 100 * eps * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=100 * eps, atol=tolerance, err_msg=how)


def check(case: Program) -> None:
    """Raises an error if the program is not what JAX computes, in a graph, loaded, or frozen."""
    expected = np.asarray(jax.jit(case.fun)(case.x, case.weights))
    x = tf.constant(case.x)
    module = _module(case)
    _check("graph", module.run(x), expected)
    frozen = convert_variables_to_constants_v2(module.run.get_concrete_function())
    _check("frozen", frozen(x)[0], expected)
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory)
        loaded = tf.saved_model.load(directory)
        _check("loaded", loaded.run(x), expected)


def main(first: int, last: int) -> None:
    """Runs programs; prints the name of each, and what is wrong with it."""
    for seed in range(first, last):
        case = program(seed)
        print(case.name, flush=True)
        try:
            with jax.enable_x64(True):
                check(case)
        except Exception as error:
            print(f"FAILED {type(error).__name__}: {str(error).strip()[:600]}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
