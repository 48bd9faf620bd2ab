"""Measures how long conversions take, by the size and the form of a program.

    python -m tools.measure_conversion --database results.sqlite

A conversion traces a JAX function and makes a TensorFlow graph of it; JAX's own tracing is timed
apart. The programs are chains of elementwise equations, calls of one body, nested calls, and
constants that the function holds. Each is converted once before, in a small size.
"""

import argparse
import functools
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from jax import lax

import lowering
from results.figures import Measured
from tools import performance
from tools.terminal import run

_X = np.ones((8,), np.float32)
# The equations of a body that is called: one that is put in place, and one that is a function.
_BODY, _LONG_BODY = 10, 30
_MEGABYTE = 1_000_000

_OPS = (
    lax.sin,
    lambda x: lax.mul(x, _X),
    lax.neg,
    lambda x: lax.add(x, _X),
    lambda x: lax.max(x, _X),
)
# The same ones in TensorFlow: their names, and those of further operands.
_RAW_OPS = (("Sin",), ("Mul", "y"), ("Neg",), ("AddV2", "y"), ("Maximum", "y"))


def _chain(count: int) -> Callable[[Any], Any]:
    """A function of so many equations."""

    def fun(x: Any) -> Any:
        for i in range(count):
            x = _OPS[i % len(_OPS)](x)
        return x

    return fun


def _calls(count: int, equations: int = _BODY) -> Callable[[Any], Any]:
    """A function that calls one body so often."""
    body = jax.jit(_chain(equations))

    def fun(x: Any) -> Any:
        for _ in range(count):
            x = body(x)
        return x

    return fun


def _nested(depth: int) -> Callable[[Any], Any]:
    """A call in a call, so deep, with an equation in each."""
    fun: Callable[[Any], Any] = lax.sin
    for _ in range(depth):
        fun = jax.jit(lambda x, fun=fun: lax.neg(fun(x)))
    return fun


def _constants(megabytes: int) -> Callable[[Any], Any]:
    """A function that holds arrays of one megabyte each."""
    size = _MEGABYTE // _X.nbytes
    held = [np.full((size, *_X.shape), i, np.float32) for i in range(megabytes)]
    return lambda x: sum(lax.slice_in_dim(array * x, 0, 1) for array in held)


# By what programs are called: what makes them, and their sizes.
PROGRAMS: dict[str, tuple[Callable[[int], Callable[[Any], Any]], Sequence[int]]] = {
    "equations": (_chain, (100, 1_000, 10_000, 30_000, 100_000)),
    "calls of one body": (_calls, (10, 100, 1_000, 3_000)),
    "calls of a long body": (
        functools.partial(_calls, equations=_LONG_BODY),
        (10, 100, 1_000, 3_000),
    ),
    "nested calls": (_nested, (10, 30, 50, 100)),
    "MB of constants": (_constants, (10, 100, 300)),
}


def measure(fun: Callable[[Any], Any], again: Callable[[Any], Any]) -> tuple[float, float]:
    """How long JAX traces a function, and how long its conversion takes in all, in seconds.

    Args:
      fun: the function.
      again: an equal one, as JAX remembers what it has traced.
    """
    gc.collect()
    start = time.perf_counter()
    jax.make_jaxpr(fun)(_X)
    traced = time.perf_counter()
    converted = lowering.convert(again, with_gradient=False)
    tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec(_X.shape))
    return traced - start, time.perf_counter() - traced


def by_hand(count: int) -> float:
    """How long TensorFlow takes to make a graph of the ops of a chain, in seconds."""

    def fun(x: tf.Tensor) -> tf.Tensor:
        constant = tf.constant(_X)
        for i in range(count):
            op, *others = _RAW_OPS[i % len(_RAW_OPS)]
            x = getattr(tf.raw_ops, op)(x=x, **dict.fromkeys(others, constant))
        return x

    gc.collect()
    start = time.perf_counter()
    tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec(_X.shape))
    return time.perf_counter() - start


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure_conversion",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--program", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--largest", type=int, default=100_000, help="no larger sizes")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    with performance.recording(args.database, "python -m tools.measure_conversion") as record:
        for name in args.program:
            make, sizes = PROGRAMS[name]
            measure(make(sizes[0]), make(sizes[0]))
            for size in (size for size in sizes if size <= args.largest):
                traced, seconds = measure(make(size), make(size))
                print(f"{size:7,} {name:20} tracing {traced:7.2f} s, in all {seconds:7.2f} s")
                found = {"JAX's tracing": traced, "conversion": seconds}
                if name == "equations":
                    found["as many ops in TensorFlow"] = by_hand(size)
                for figure, value in found.items():
                    measured = Measured(value, value, value, "s")
                    record(f"{size:,} {name}", f"{figure}, time", measured)
    return 0


if __name__ == "__main__":
    run(main)
