"""Graphs are frozen alone: what is frozen before does not matter, nor what a name is elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from tensorflow.python.eager import context

from lowering import export
from lowering.export.entries import entry
from lowering.export.frozen import frozen
from lowering.targets import ONNX

X = np.float32([1, 2, 3])


def stepping(step, is_early=lambda y: True):
    """A loop whose branches hand on what they do not change."""

    def body(state):
        i, y, failed, z = state
        return lax.cond(
            y.sum() > 5, lambda: (i + 1, step(y), failed, z), lambda: (i + 1, y * 1.5, failed, z)
        )

    def fun(x):
        state = (0, x, False, x * 2)
        return lax.while_loop(lambda s: (s[0] < 5) & ~s[2] & is_early(s[1]), body, state)[1]

    return fun


def called_twice(fun):
    """Calls that are functions of the graph, as they are long."""

    @jax.jit
    def long(x):
        y = fun(x)
        for i in range(6):
            y = jnp.sin(y) / (i + 2) + jnp.cos(x)
        return y

    return lambda x: long(x) + long(x * 0.5)


PROGRAMS = {
    "branches": lambda k: stepping(lambda y: jnp.sin(y) * k),
    "calls in a loop": lambda k: stepping(called_twice(lambda y: y * k)),
    "loops in calls in a loop": lambda k: stepping(
        called_twice(stepping(lambda y: jnp.cos(y) * k)),
        lambda y: called_twice(stepping(lambda z: z / 2))(y)[0] < 50,
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_other_programs_may_be_frozen_before(program):
    """TensorFlow's optimizer gives functions of different graphs the same names."""
    for k in (2.0, 3.0):
        concrete = entry(PROGRAMS[program](k), (X,), ONNX).concrete
        registered = set(context.context().list_function_names())
        assert frozen(concrete).graph_def.library.function
        # Functions of graphs that were there before may be collected meanwhile.
        assert set(context.context().list_function_names()) <= registered


def test_exports_in_one_process(tmp_path):
    """Among them a loop in the condition of a loop, whose arguments have the same names."""
    branches, _, nested = PROGRAMS.values()
    for k in (2.0, 3.0):
        export.to_tfjs(branches(k), (X,), tmp_path / f"model{k}", verify=False)
        export.to_onnx(branches(k), (X,))
    export.to_tflite(branches(4.0), (X,))
    export.to_onnx(nested(2.0), (X,))
