"""PRNG keys and random bits, which must equal JAX's for every key implementation."""

import functools
import math

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import FLOAT, INTEGER, full_range, name, random
from harnesses.axes import axes, axes_but, axes_of, every_axis, symbolic
from harnesses.compare import Comparison, close
from harnesses.harness import Harness, harnesses
from lowering import jax_compat
from lowering.ops.dtypes import LOW_PRECISION

_IMPLEMENTATIONS = {
    "threefry2x32": 2,
    "rbg": 4,
    "unsafe_rbg": 4,
    "philox2x32": 1,
    "philox4x32": 2,
    "threefry4x32": 4,
}
_THREEFRY = "threefry2x32"
_SHAPES = ((), (1,), (5,), (2, 3), (0, 3))


def _words(shape=(), impl=_THREEFRY):
    return full_range((*shape, _IMPLEMENTATIONS[impl]), np.uint32)


def _on_key(fun, impl=_THREEFRY):
    """Returns `fun`, whose first argument is a key or keys, as a function of the key data."""

    def on_words(words, *args):
        return fun(jax.random.wrap_key_data(words, impl=impl), *args)

    return on_words


_SHORT_NORMALS = tuple(f"normal_{name(dtype)}" for dtype in LOW_PRECISION)


def _close_as_probabilities(expected, actual, args):
    """Whether normal numbers are near in what they are quantiles of.

    A uniform number from -1 to 1 has the precision of 16 bits in JAX and that of float32 here; next
    to 1 the quantiles are far apart.
    """
    quantiles = np.vectorize(math.erf)
    levels = [
        [quantiles(np.asarray(x, np.float64) / math.sqrt(2)).astype(x.dtype) for x in results]
        for results in (expected, actual)
    ]
    return close(ulps=2, atol=float(jnp.finfo(expected[0].dtype).eps))(*levels, args)


def _harness(primitive, case, fun, *args, impl=_THREEFRY, shape=(), **options):
    fun = _on_key(fun, impl)
    options.setdefault("symbolic", axes_of(range(len(shape)), (0,)))
    return Harness(primitive, f"{case}_{impl}", fun, (_words(shape, impl), *args), **options)


@harnesses
@symbolic(every_axis)
def random_seed():
    for impl in _IMPLEMENTATIONS:
        for dtype in INTEGER if impl == _THREEFRY else (np.int32, np.uint64):
            seed = functools.partial(jax.random.key, impl=impl)
            args = (full_range((), dtype),)
            yield Harness("random_seed", f"{impl}_{name(dtype)}", seed, args)
        batched = jax.vmap(functools.partial(jax.random.key, impl=impl))
        yield Harness("random_seed", f"vmap_{impl}", batched, (full_range((3,), np.int32),))
        known = lambda x, impl=impl: (jax.random.key(7, impl=impl), x)  # noqa: E731
        yield Harness("random_seed", f"known_{impl}", known, (random((), np.int32),))
    for seed in (0, 1, -1, 2**31, 2**32 + 5, -(2**40)):
        yield Harness("random_seed", f"{seed=}", jax.random.key, (np.int64(seed),))


@harnesses
def random_split():
    for impl in _IMPLEMENTATIONS:
        for shape in (2, (), (3,), (2, 3), (0,)):
            fun = functools.partial(jax.random.split, num=shape)
            yield _harness("random_split", f"{shape=}", fun, impl=impl)
        yield _harness("random_split", "vmap", jax.vmap(jax.random.split), impl=impl, shape=(3,))


@harnesses
def random_fold_in():
    for impl in _IMPLEMENTATIONS:
        for dtype in (np.int32, np.uint32):
            data = full_range((), dtype)
            fun = jax.random.fold_in
            yield _harness("random_fold_in", name(dtype), fun, data, impl=impl)
        many = full_range((3,), np.uint32)
        for case, mapped in {"both": (0, 0), "data": (None, 0), "keys": (0, None)}.items():
            fun = jax.vmap(jax.random.fold_in, mapped)
            shape = () if mapped[0] is None else (3,)
            data = many if mapped[1] is not None else full_range((), np.uint32)
            yield _harness("random_fold_in", f"vmap_of_{case}", fun, data, impl=impl, shape=shape)


@harnesses
def random_bits():
    for impl in _IMPLEMENTATIONS:
        for width in (8, 16, 32, 64):
            for shape in _SHAPES if width == 32 else _SHAPES[-2:-1]:
                fun = functools.partial(jax.random.bits, shape=shape, dtype=f"uint{width}")
                yield _harness("random_bits", f"{width=}_{shape=}", fun, impl=impl)
        fun = jax.vmap(functools.partial(jax.random.bits, shape=(2,)))
        yield _harness("random_bits", "vmap", fun, impl=impl, shape=(3,))

    def not_partitionable(fun):
        def traced(*args):
            with jax.threefry_partitionable(False):
                return fun(*args)

        return traced

    for width in (8, 16, 32, 64):
        for shape in ((), (5,), (2, 3)):
            fun = functools.partial(jax.random.bits, shape=shape, dtype=f"uint{width}")
            case = f"not_partitionable_{width=}_{shape=}"
            yield _harness("random_bits", case, not_partitionable(fun))
    yield _harness("random_split", "not_partitionable", not_partitionable(jax.random.split))


@harnesses
def random_wrap():
    for impl in _IMPLEMENTATIONS:
        fun = functools.partial(jax.random.wrap_key_data, impl=impl)
        yield Harness("random_wrap", impl, fun, (_words((3,), impl),), symbolic=axes(0))


@harnesses
def random_unwrap():
    for impl in _IMPLEMENTATIONS:
        yield _harness("random_unwrap", "keys", jax.random.key_data, impl=impl, shape=(3,))
        clone = jax.random.clone
        yield _harness("random_clone", "keys", clone, impl=impl, shape=(3,))


@harnesses
@symbolic(every_axis)
def random_clone():
    yield Harness("random_clone", "words", jax.random.clone, (_words(),))


@harnesses
def keys():
    """Yields harnesses of control flow, and of primitives that only move elements, on keys."""
    index, n = np.array([[2], [0], [7], [-1]], np.int32), np.int32(3)

    def carry(step, k):
        return lax.fori_loop(0, n, step, k)

    cases = [
        ("reshape", lambda k: k.reshape(2, 3), (6,)),
        ("broadcast_in_dim", lambda k: jnp.broadcast_to(k, (2, *k.shape)), (3,)),
        ("slice", lambda k: k[1:5:2], (6,)),
        ("dynamic_slice", lambda k: lax.dynamic_slice(k, (k.shape[0] - n,), (2,)), (6,)),
        ("dynamic_slice", lambda k: lax.dynamic_index_in_dim(k, n), (6, 2)),
        ("dynamic_update_slice", lambda k: lax.dynamic_update_slice(k, k[:2], (n,)), (6,)),
        ("gather", lambda k: k[index[:2, 0]], (3,)),
        ("gather", lambda k: k.at[index].get(mode="fill"), (3,)),
        ("gather", lambda k: k.at[index].get(mode="clip"), (3, 2)),
        ("scatter", lambda k: k.at[index[:2, 0]].set(k[0]), (3,)),
        ("select_n", lambda k: jnp.where(index[:3, 0] > 0, k, k[0]), (3,)),
        ("concatenate", lambda k: jnp.concatenate([k, k[:1]]), (3,)),
        ("transpose", lambda k: k.T, (3, 2)),
        ("squeeze", lambda k: k[:, 0], (3, 1)),
        ("rev", lambda k: jnp.flip(k), (3,)),
        ("copy", lambda k: jnp.copy(k), (3,)),
        ("eq", lambda k: k == k[0], (3,)),
        ("ne", lambda k: k != k[0], (3,)),
        ("split", lambda k: lax.split(k, (1, 2)), (3,)),
        ("jit", jax.jit(lambda k: (k, jax.random.bits(k[0]))), (3,)),
        ("while", functools.partial(carry, lambda i, k: jax.random.fold_in(k, i)), ()),
        ("while", functools.partial(carry, lambda i, k: jnp.flip(k)), (3,)),
        ("scan", lambda k: lax.scan(lambda c, x: (jax.random.split(c)[1], c), k, None, 30), ()),
        ("scan", lambda k: lax.scan(lambda c, x: (x, (c, jax.random.bits(x))), k[0], k), (40,)),
        ("scan", lambda k: lax.scan(lambda c, x: (x, (c, jax.random.bits(x))), k[0], k), (2,)),
        ("cond", lambda k: lax.cond(k[0] == k[1], jnp.flip, lambda k: k, k), (3,)),
        ("cond", lambda k: lax.switch(n, [jnp.flip, lambda k: k[jnp.array([1, 1])]], k), (2,)),
        ("remat2", jax.checkpoint(lambda k: jax.random.split(k)), ()),
    ]
    # The numbers of the cases of which JAX has to know the size.
    fixed = (0, 3, 10, 18, 26)
    for impl in ("threefry2x32", "rbg", "philox2x32"):
        for i, (primitive, fun, shape) in enumerate(cases):
            options = {"symbolic": axes()} if i in fixed else {}
            yield _harness(
                primitive, f"keys_{i}", fun, impl=impl, shape=shape, dtype=np.uint32, **options
            )


@harnesses
@symbolic(every_axis)
def hashes():
    words = functools.partial(full_range, dtype=np.uint32)
    bind = jax.extend.random.threefry2x32_p.bind
    for shape in _SHAPES:
        args = (words(()), words(()), words(shape), words(shape))
        yield Harness("threefry2x32", f"{shape=}", bind, args)
    rows = words((3, 1)), words((3, 1)), words((3, 4)), words((3, 4))
    yield Harness("threefry2x32", "vmap", jax.vmap(bind), rows)
    yield Harness("threefry2x32", "broadcast", bind, (*rows[:2], words((1, 4)), words((3, 4))))
    yield Harness("threefry2x32", "same", bind, (words((3,)),) * 4)
    for primitive in ("threefry4x32", "philox2x32", "philox4x32"):
        impl = jax_compat.key_impl(jax.random.key(0, impl=primitive).dtype)
        for shape in _SHAPES:
            fun = functools.partial(
                jax_compat.random_bits, impl=impl, bit_width=64, shape=shape, partitionable=True
            )
            yield Harness(primitive, f"{shape=}", fun, (_words((), primitive),), symbolic=axes())
        fun = functools.partial(jax_compat.random_split, impl=impl, shape=(2,), partitionable=True)
        words_of_keys = (_words((3,), primitive),)
        yield Harness(primitive, "split_vmap", fun, words_of_keys, symbolic=axes(0))


@harnesses
@symbolic(axes_but(-1))
def rng_bit_generator():
    algorithms = lax.RandomAlgorithm
    shapes = ((), (1,), (2,), (5,), (3, 5), (3, 4), (5, 3), (0, 2))
    for algorithm in (algorithms.RNG_THREE_FRY, algorithms.RNG_PHILOX):
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            for shape in shapes if dtype == np.uint32 else shapes[3:5]:
                fun = functools.partial(
                    lax.rng_bit_generator, shape=shape, dtype=dtype, algorithm=algorithm
                )
                case = f"{algorithm.name}_{shape=}_{name(dtype)}"
                yield Harness("rng_bit_generator", case, fun, (_words((), "rbg"),), dtype=dtype)
        fun = functools.partial(lax.rng_bit_generator, shape=(7,), algorithm=algorithm)
        # The low 64 bits of the counter overflow.
        full = np.array([5, 7, 2**32 - 1, 2**32 - 1], np.uint32)
        yield Harness("rng_bit_generator", f"{algorithm.name}_overflow", fun, (full,))
        args = (full_range((2,), np.uint64),)
        yield Harness("rng_bit_generator", f"{algorithm.name}_uint64_key", fun, args)
        yield Harness(
            "rng_bit_generator", f"{algorithm.name}_vmap", jax.vmap(fun), (_words((2,), "rbg"),)
        )

    yield Harness(
        "rng_bit_generator",
        "default",
        lambda key: lax.rng_bit_generator(key, (7,)),
        (_words((), "rbg"),),
    )


@harnesses
def rng_uniform():
    def in_range(expected, actual, args):
        (x,) = actual
        low, high = args
        # XLA may round a float up to the upper limit.
        below = x < high if x.dtype.kind in "iu" else x <= high
        return Comparison(bool(((low <= x) & below).all()), message="out of range")

    for dtype in (np.int32, np.int64, np.uint32, np.uint64, *FLOAT):
        fun = functools.partial(lax.rng_uniform, shape=(5, 4))
        args = (np.array(2, dtype), np.array(50, dtype))
        # Only the range is compared: XLA does not specify the numbers, and they differ between
        # compilations.
        yield Harness("rng_uniform", name(dtype), fun, args, in_range)


def _sampler(function, **options):
    """Returns a function of `jax.random` as a function of a key."""
    return functools.partial(getattr(jax.random, function), **options)


@harnesses
def distributions():
    """Yields harnesses of `jax.random` functions, each as a case of `random_bits`."""
    shape = (3, 4)
    probabilities = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    exact = {
        "uniform": _sampler("uniform", shape=shape),
        "randint": _sampler("randint", shape=shape, minval=-5, maxval=17),
        "bernoulli": _sampler("bernoulli", p=0.3, shape=shape),
        "permutation": _sampler("permutation", x=9),
        "permutation_of_rows": _sampler("permutation", x=np.arange(12).reshape(4, 3)),
        "permutation_independent": _sampler(
            "permutation", x=np.arange(12).reshape(4, 3), axis=1, independent=True
        ),
        "choice": _sampler("choice", a=10, shape=shape),
        "choice_without_replacement": _sampler("choice", a=10, shape=(4,), replace=False),
        "choice_with_probabilities": _sampler("choice", a=4, shape=shape, p=probabilities),
        "categorical": _sampler("categorical", logits=np.log(probabilities), shape=shape),
        "rademacher": _sampler("rademacher", shape=shape),
    }
    for dtype in INTEGER:
        exact[f"randint_{name(dtype)}"] = _sampler(
            "randint", shape=shape, minval=3, maxval=90, dtype=dtype
        )
    approximate = {
        "exponential": _sampler("exponential", shape=shape),
        "gumbel": _sampler("gumbel", shape=shape),
        "laplace": _sampler("laplace", shape=shape),
        "logistic": _sampler("logistic", shape=shape),
        "cauchy": _sampler("cauchy", shape=shape),
        "truncated_normal": _sampler("truncated_normal", lower=-2.0, upper=2.0, shape=shape),
        "multivariate_normal": _sampler("multivariate_normal", mean=np.zeros(2), cov=np.eye(2)),
        "gamma": _sampler("gamma", a=2.5, shape=shape, dtype=np.float32),
        "beta": _sampler("beta", a=2.0, b=3.0, shape=shape, dtype=np.float32),
        "dirichlet": _sampler("dirichlet", alpha=probabilities),
        "poisson": _sampler("poisson", lam=4.0, shape=shape),
        "t": _sampler("t", df=4.0, shape=shape, dtype=np.float32),
        "ball": _sampler("ball", d=2, shape=(3,), dtype=np.float32),
        "orthogonal": _sampler("orthogonal", n=3),
    }
    for dtype in FLOAT:
        approximate[f"normal_{name(dtype)}"] = _sampler("normal", shape=shape, dtype=dtype)
        exact[f"uniform_{name(dtype)}"] = _sampler("uniform", shape=shape, dtype=dtype)
    for dtype in (np.complex64, np.complex128):
        approximate[f"normal_{name(dtype)}"] = _sampler("normal", shape=shape, dtype=dtype)
    for case, sample in exact.items():
        yield _harness("random_bits", case, sample)
    for case, sample in approximate.items():
        # They compute inverse error functions, logarithms and differences of these.
        promoted = _close_as_probabilities if case in _SHORT_NORMALS else None
        comparer = close(ulps=32, atol=1e-6)
        yield _harness("random_bits", case, sample, comparer=comparer, promoted=promoted)
