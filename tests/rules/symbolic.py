"""Functions with symbolic parameters, and what their conversions have to compute."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import lowering

# Targets, each with whether its graph is compiled.
WAYS = [("tf", False), ("xla", True)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A function, and the symbolic shapes of its arguments.

    Attributes:
      fun: a function whose results are unique, as those of decompositions are not.
      specs: the shape of each argument.
      sizes: the values of all dimension variables, one after the other; if there are several
        variables, each takes another one of them.
      dtype: of all arguments.
      constraints: what the function needs to be traced.
      x64: whether JAX has dtypes of 64 bits.
    """

    fun: Callable[..., Any]
    specs: tuple[str, ...]
    sizes: tuple[int, ...] = (1, 2, 5)
    dtype: Any = np.float32
    constraints: tuple[str, ...] = ()
    x64: bool = False


def table(*families: Callable[[], Iterable[tuple[str, Case]]]) -> dict[str, Case]:
    """The cases that generators yield, by name."""
    return {
        f"{family.__name__.strip('_')}-{name}": case
        for family in families
        for name, case in family()
    }


def check(case: Case, ways: Iterable[tuple[str, bool]] = WAYS) -> None:
    """Converts a function once for each way, and compares it with JAX at several sizes."""
    with jax.enable_x64(case.x64):
        runs = [list(_arguments(case, start)) for start in range(len(case.sizes))]
        expected = [jax.jit(case.fun)(*args) for args in runs]
        for target, compiled in ways:
            function = _converted(case, target, compiled)
            for args, results in zip(runs, expected, strict=True):
                what = f"{target}, {'compiled' if compiled else 'as a graph'}, {args}"
                _compare(function(*args), results, what)


def _converted(case: Case, target: str, compiled: bool) -> Callable[..., Any]:
    shapes = [[None if d.isalpha() else int(d) for d in s.split(", ")] for s in case.specs]
    return tf.function(
        lowering.convert(
            case.fun,
            polymorphic_shapes=case.specs,
            polymorphic_constraints=case.constraints,
            target=target,
            with_gradient=False,
        ),
        autograph=False,
        jit_compile=compiled,
        input_signature=[tf.TensorSpec(shape, case.dtype) for shape in shapes],
    )


def _array(shape, dtype, seed):
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind in "bui":
        return rng.integers(0, 2 if dtype.kind == "b" else 6, shape).astype(dtype)
    x = rng.uniform(-2, 2, shape)
    return (x + 1j * rng.uniform(-2, 2, shape) if dtype.kind == "c" else x).astype(dtype)


def _arguments(case, start):
    """Arguments whose dimension variables have the sizes from `start` on, in turn."""
    names = sorted({dim for spec in case.specs for dim in spec.split(", ") if dim.isalpha()})
    sizes = {name: case.sizes[(start + i) % len(case.sizes)] for i, name in enumerate(names)}
    for i, spec in enumerate(case.specs):
        shape = [sizes[dim] if dim.isalpha() else int(dim) for dim in spec.split(", ")]
        yield _array(shape, case.dtype, i)


def _compare(actual, expected, what):
    leaves = jax.tree.leaves(expected)
    for a, e in zip(tf.nest.flatten(actual), map(np.asarray, leaves), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype), what
        if not jnp.issubdtype(e.dtype, np.inexact):
            np.testing.assert_array_equal(a, e, what)
            continue
        # Sums over whole arrays, and matrices of condition up to a hundred.
        tolerance = 1000 * float(jnp.finfo(e.dtype).eps)
        wide = np.complex128 if e.dtype.kind == "c" else np.float64
        a, e = a.numpy().astype(wide), e.astype(wide)
        scale = max(1, np.abs(e).max(initial=0, where=np.isfinite(e)))
        np.testing.assert_allclose(a, e, tolerance, tolerance * scale, err_msg=what)
