"""Prints by how many bytes a process grows at most when it makes and runs a graph with a constant.

    python -m tests.held_constants lowering

What it prints is for `tests/test_memory.py`. Linux counts the peak, and forgets it when asked to.
"""

import gc
import pathlib
import sys

import jax
import numpy as np
import tensorflow as tf

import lowering

STATUS, FORGET = (pathlib.Path("/proc/self") / name for name in ("status", "clear_refs"))
BYTES = 25 << 20


def _bytes(name: str) -> int:
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return 1024 * next(int(line[1]) for line in lines if line[0] == f"{name}:")


def _run(by: str, constant: jax.Array) -> None:
    """Makes and runs a graph that multiplies by a constant, and takes rows of it."""
    x = np.ones((1, constant.shape[0]), np.float32)

    def by_jax(x):
        return x @ constant + constant[x[0, :1].astype(int)]

    def by_tensorflow(x):
        known = tf.constant(np.asarray(constant))
        return tf.matmul(x, known) + tf.gather(known, tf.cast(x[0, :1], tf.int32))

    fun = by_tensorflow if by == "tensorflow" else lowering.convert(by_jax, target="tf")
    tf.function(fun, autograph=False)(tf.constant(x))


def main(by: str) -> None:
    draw = np.random.default_rng(0).random
    _run(by, jax.numpy.asarray(draw((8, 64), np.float32)))
    constant = jax.numpy.asarray(draw((BYTES // 256, 64), np.float32)).block_until_ready()
    gc.collect()
    FORGET.write_text("5")
    before = _bytes("VmRSS")
    _run(by, constant)
    print(_bytes("VmHWM") - before)


if __name__ == "__main__":
    main(sys.argv[1])
