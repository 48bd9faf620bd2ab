"""The bench without each of the choices for speed, on a program that is small."""

import jax
import numpy as np

from tools import bench

X = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def program(weights, x):
    """A loop, a contraction, a call and a fused pattern, which the choices are about."""

    def step(carry, row):
        return jax.nn.relu(carry @ weights) + row, carry.T

    carry, _ = jax.lax.scan(step, x, x[:2])
    return jax.nn.softmax(carry)


def test_every_choice_can_be_left_out(monkeypatch):
    monkeypatch.setattr(bench, "MODES", {"graph": False})
    monkeypatch.setattr(bench, "_TURN_SECONDS", 0)
    small = bench.Program("small", program, (X, X))
    rows = bench.report_gains(small, tuple(bench.WITHOUT), "tf", 1, bench.CLOCKS["processor"])
    assert [row[1] for row in rows] == [f"graph without {choice}" for choice in bench.WITHOUT]
