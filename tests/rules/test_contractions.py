"""Contractions as products of elements, and as products of matrices."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.scipy.linalg import solve_triangular

import lowering
from lowering.export import runtimes
from lowering.export.flat import flat_entry
from lowering.targets import CONSUMERS, TARGETS

RNG = np.random.default_rng(0)


def _numbers(*shape):
    return RNG.integers(-3, 4, shape).astype(np.float32)


V, W, X, Y = _numbers(3), _numbers(4), _numbers(3, 4), _numbers(3, 5)
# Contractions in the notation of einsum; those of the first are of elements.
OF_ELEMENTS = (
    ("i,j->ij", V, W),
    ("i,j->ji", V, W),
    (",i->i", np.float32(2), V),
    ("ij,k->kij", X, V),
    ("ij,ik->ijk", X, Y),
    ("ij,ij->ij", X, X),
    ("ij,ij->i", X, X),
    ("bik,bjk->bij", _numbers(3, 1, 4), _numbers(3, 1, 4)),
    ("bik,bjk->bij", _numbers(3, 2, 1), _numbers(3, 4, 1)),
    ("ik,kj->ij", _numbers(1, 1), _numbers(1, 4)),
    ("ik,jk->ij", _numbers(4, 1), _numbers(1, 1)),
)
OF_MATRICES = (
    ("ij,ik->jk", X, Y),
    ("i,i->", V, V),
    ("ij,j->i", X, W),
    ("ik,jk->ij", _numbers(3, 1), _numbers(4, 1)),
    ("bij,bj->bi", _numbers(2, 3, 4), _numbers(2, 4)),
)


def _einsums(cases):
    return lambda *args: [
        jnp.einsum(equation, *args[2 * i : 2 * i + 2]) for i, (equation, *_) in enumerate(cases)
    ]


@pytest.mark.parametrize("target", ["tf", "xla", "portable", *CONSUMERS])
def test_ops(target):
    # Natural targets multiply two vectors as people do, by a sum of products.
    of_matrices = len(OF_MATRICES) - TARGETS[target].is_natural
    for cases, matmuls in ((OF_ELEMENTS, 0), (OF_MATRICES, of_matrices)):
        fun, args = _einsums(cases), [x for _, *operands in cases for x in operands]
        converted = lowering.convert(fun, target=target, with_gradient=False)
        function = tf.function(converted, autograph=False)
        for result, expected in zip(function(*args), fun(*args), strict=True):
            np.testing.assert_array_equal(result, expected)
        ops = function.get_concrete_function(*map(tf.constant, args)).graph.get_operations()
        assert sum("MatMul" in op.type for op in ops) == matmuls


def _programs(x, y, matrix, many, flat):
    """Gradients with a scalar cotangent, constants of ones, and matrices in many batches."""
    process = jax.grad(lambda y: y @ solve_triangular(matrix, y, lower=True))
    return [
        process(y),
        jax.grad(lambda y: 0.5 * y @ matrix @ y)(y),
        jnp.einsum("ij,jk->ik", x, jnp.ones((4, 3))),
        jnp.einsum("ij,j->i", x, jnp.ones(4)),
        jnp.einsum("i,j->ij", y, jnp.ones(4)),
        jnp.einsum("i,i->", y, jnp.ones(4)),
        jnp.einsum("i,->i", y, jnp.ones(())),
        many @ many,
        many @ flat,
        flat @ many,
        jnp.einsum("...ji,...kj->...ik", many, many),
        jnp.vecdot(many, many),
        many.sum(2),
        many.max((1, 3, 5)),
        many.mean((0, 2, 4)),
    ]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_runtimes(consumer):
    matrix = np.tril(_numbers(4, 4)) + 9 * np.eye(4, dtype=np.float32)
    args = (X, W, matrix, _numbers(2, 1, 2, 3, 2, 3, 3), _numbers(3, 3))
    converted = lowering.convert(_programs, target=consumer, with_gradient=False)
    for results in runtimes.run(consumer, flat_entry(converted, args)).values():
        for result, expected in zip(results, jax.jit(_programs)(*args), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


# Cotangents are often constants: that of a sum is ones.
KNOWN = {"ones": np.ones, "identity": lambda shape: np.eye(*shape[-2:])}


def _products_with(known):
    """Equations, known matrices, the other operands, and whether what is known is on the left."""
    equations = ("ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ij")
    sizes = itertools.product((1, 3), (1, 2), (1, 4))
    for (i, k, j), batch, equation in itertools.product(sizes, ((), (2,)), equations):
        size = {"i": i, "k": k, "j": j}
        lhs, rhs = ((*batch, *map(size.get, axes)) for axes in equation[:5].split(","))
        equation = equation.replace(",", ",...").replace("->", "->...")
        for shape, other, is_left in ((lhs, rhs, True), (rhs, lhs, False)):
            matrix = np.broadcast_to(KNOWN[known](shape), shape).astype(np.float32)
            yield f"...{equation}", matrix, _numbers(*other), is_left


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("known", KNOWN)
def test_known_matrices(known, consumer):
    products = list(_products_with(known))
    args = [x for _, _, x, _ in products]

    def fun(*args):
        return [
            jnp.einsum(equation, *((matrix, x) if is_left else (x, matrix)))
            for (equation, matrix, _, is_left), x in zip(products, args, strict=True)
        ]

    converted = lowering.convert(fun, target=consumer, with_gradient=False)
    for results in runtimes.run(consumer, flat_entry(converted, args)).values():
        for result, expected in zip(results, jax.jit(fun)(*args), strict=True):
            np.testing.assert_array_equal(result, expected)
