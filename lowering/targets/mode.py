"""Modes: how TensorFlow executes the ops that a program becomes."""

import enum


class Mode(enum.Enum):
    """How the ops that are made now are executed.

    A graph may be compiled after all: it can be saved, loaded, and called from a `tf.function` with
    `jit_compile=True`.
    """

    EAGER = "eager"
    GRAPH = "graph"
    COMPILED = "compiled"
