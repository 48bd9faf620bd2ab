"""Samples of the gamma distribution."""

import functools

import jax
import numpy as np

from harnesses.arguments import FLOAT, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import Harness, harnesses


def _sample(seed, alpha, *, sampler=jax.random.gamma, shape=(3, 4), impl="threefry2x32"):
    if alpha.ndim:
        shape = (*shape[:-1], *alpha.shape)
    return sampler(jax.random.key(seed, impl=impl), alpha, shape, alpha.dtype)


def _case(case, dtype, **params):
    # The logarithm of a uniform sample near 1 loses digits.
    comparer = close(ulps=64 if np.dtype(dtype).itemsize >= 4 else 8)
    args = np.uint32(42), random((4,) if "shape" not in params else (), dtype, 0.1, 5)
    fun = functools.partial(_sample, **params)
    return Harness("random_gamma", case, fun, args, comparer, dtype=dtype)


@harnesses
@symbolic(every_axis)
def random_gamma():
    for dtype in FLOAT:
        yield _case(name(dtype), dtype)
    yield _case("log_space", np.float32, sampler=jax.random.loggamma)
    yield _case("scalar", np.float32, shape=())
    yield _case("empty", np.float32, shape=(0, 2))
    yield _case("rbg", np.float32, impl="rbg")
