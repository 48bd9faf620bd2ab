"""Harnesses whose cells crash, hang, fail or are slow, to test sweeps with.

As a script it sweeps them; its command line is that of `tools.sweep`.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf
from jax.interpreters import mlir

from harnesses.harness import Harness
from limitations import Limitation, all_limitations
from lowering.errors import UnsupportedError
from lowering.registry import rule
from tools import sweep

SLOW_CASES = 24

_harnesses: dict[str, Harness] = {}


def _harness(primitive: str, fun: Callable[..., Any], case: str = "case", args: Any = ()) -> None:
    harness = Harness(primitive, case, fun, args or (np.arange(3, dtype=np.int32),), dtype=np.int32)
    _harnesses[harness.name] = harness


def misbehaving(lower: Callable[[tf.Tensor], tf.Tensor]) -> Callable[[jax.Array], jax.Array]:
    """Makes a primitive of a TensorFlow rule; in JAX it is the identity."""
    primitive = jex_core.Primitive(lower.__name__)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, lambda ctx, x: [x])
    rule(primitive.name)(lambda ctx, x: lower(x))
    _harness(primitive.name, primitive.bind)
    return primitive.bind


@misbehaving
def bad_fine(x):
    return tf.identity(x)


@misbehaving
def bad_abort(x):
    if not tf.executing_eagerly():
        os.abort()
    return tf.identity(x)


@misbehaving
def bad_hang(x):
    if tf.executing_eagerly():
        time.sleep(3600)
    return tf.identity(x)


@misbehaving
def bad_wrong(x):
    return x + 1


@misbehaving
def bad_refused(x):
    raise UnsupportedError("refused")


@misbehaving
def bad_stale(x):
    return tf.identity(x)


@misbehaving
def bad_slow(x):
    time.sleep(0.2)
    return tf.identity(x)


class UnsendableError(Exception):
    """An error that cannot be sent to other processes."""

    def __init__(self, message: str, reason: Any):
        super().__init__(message)
        self.reason = reason


def _no_arguments(rng):
    raise UnsendableError("no \udce4rguments", lambda: None)


_harness("bad_harness", bad_fine, args=(_no_arguments,))
for i in range(SLOW_CASES):
    _harness("bad_slow", bad_slow, f"case={i}")

_LIMITATIONS = {
    "bad_refused": (Limitation("It is refused.", error="lowering error: .*refused"),),
    "bad_stale": (
        Limitation("It should fail in graph mode.", error="TF error", modes={"graph"}),
        Limitation("No harness has this dtype.", error="TF error", dtypes={"int8"}),
    ),
}


def catalogue() -> Mapping[str, Harness]:
    """The harnesses by name; it also adds their limitations to those of the project."""
    all_limitations().update(_LIMITATIONS)
    return _harnesses


if __name__ == "__main__":
    sys.exit(sweep.main(catalogue=catalogue))
