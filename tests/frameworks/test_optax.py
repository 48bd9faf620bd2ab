"""Optax: optimizers as steps from parameters and state to parameters and state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

optax = pytest.importorskip("optax")

X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 4, 16)
PARAMS = {"w": np.full((3, 4), 0.1, np.float32), "b": np.zeros(4, np.float32)}


def loss(params, x, labels):
    logits = x @ params["w"] + params["b"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


OPTIMIZERS = {
    "adamw": lambda: optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10)),
    ),
    "adafactor": lambda: optax.adafactor(0.1),
    "lion": lambda: optax.lion(0.1),
    "sgd_every_other_step": lambda: optax.MultiSteps(optax.sgd(0.1, momentum=0.9), 2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_of_training(name):
    optimizer = OPTIMIZERS[name]()
    state = optimizer.init(PARAMS)

    def train(params, state, x, labels):
        def step(carry, _):
            params, state = carry
            value, gradient = jax.value_and_grad(loss)(params, x, labels)
            updates, state = optimizer.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), value

        return jax.lax.scan(step, (params, state), length=4)

    # The sign of a gradient, which lion follows, has no derivative.
    check(train, PARAMS, state, X, LABELS, differentiable=name == "adamw")


def test_a_line_search():
    optimizer = optax.lbfgs()

    def minimize(start):
        value_and_grad = optax.value_and_grad_from_state(_rosenbrock)

        def step(carry, _):
            x, state = carry
            value, gradient = value_and_grad(x, state=state)
            updates, state = optimizer.update(
                gradient, state, x, value=value, grad=gradient, value_fn=_rosenbrock
            )
            return (optax.apply_updates(x, updates), state), value

        (x, _), values = jax.lax.scan(step, (start, optimizer.init(start)), length=6)
        return x, values

    check(minimize, np.float32([-0.5, 1.2]), differentiable=False, tolerance=1e-3)


def test_losses():
    def losses(logits, labels):
        targets = jax.nn.one_hot(labels, 4)
        return (
            optax.sigmoid_focal_loss(logits, targets),
            optax.huber_loss(logits, targets),
            optax.ctc_loss(
                logits.reshape(2, 8, 4),
                jnp.zeros((2, 8)),
                labels.reshape(2, 8)[:, :3],
                jnp.zeros((2, 3)),
            ),
        )

    logits = np.random.default_rng(2).normal(size=(16, 4)).astype(np.float32)
    check(losses, logits, LABELS)


def _rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
