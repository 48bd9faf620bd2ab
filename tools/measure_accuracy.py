"""Measures the errors of special functions, ours and JAX's, against mpmath.

    python -m tools.measure_accuracy

Writes g3doc/accuracy.json, from which `tools.regenerate_docs` makes g3doc/accuracy.md. It is
measured in graph mode on the target `tf`, where TensorFlow's kernels compute; compiled graphs give
the numbers of JAX.
"""

import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import tensorflow as tf
from jax import lax

import lowering

PATH = pathlib.Path(__file__).parents[1] / "g3doc" / "accuracy.json"
COUNT = 300
DTYPES = (np.float32, np.float64)


class Function(NamedTuple):
    """A function, its reference, and the ranges of its operands."""

    fun: Callable[..., Any]
    reference: Callable[..., Any]
    ranges: Sequence[tuple[float, float]]


def _polygamma(order: Any, x: Any) -> Any:
    return mpmath.polygamma(int(order), x)


def _igammac(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _igamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _igamma_grad_a(a: Any, x: Any) -> Any:
    return mpmath.diff(lambda b: _igamma(b, x), a)


def _random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative of a sample by `a`, at a fixed quantile."""
    density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
    return -_igamma_grad_a(a, x) / density


def _bessel(order: int, x: Any) -> Any:
    return mpmath.besseli(order, x) * mpmath.exp(-abs(x))


FUNCTIONS = {
    "exp": Function(lax.exp, mpmath.exp, [(-80, 80)]),
    "log": Function(lax.log, mpmath.log, [(0, 100)]),
    "log1p": Function(lax.log1p, mpmath.log1p, [(-0.9, 4)]),
    "sinh": Function(lax.sinh, mpmath.sinh, [(-80, 80)]),
    "tanh": Function(lax.tanh, mpmath.tanh, [(-10, 10)]),
    "cbrt": Function(lax.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), [(-1000, 1000)]),
    "pow": Function(lax.pow, mpmath.power, [(0, 10), (-15, 15)]),
    "erf": Function(lax.erf, mpmath.erf, [(-4, 4)]),
    "erfc": Function(lax.erfc, mpmath.erfc, [(-4, 9)]),
    "erf_inv": Function(lax.erf_inv, mpmath.erfinv, [(-1, 1)]),
    "lgamma": Function(lax.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x))), [(-20, 100)]),
    "digamma": Function(lax.digamma, mpmath.digamma, [(-20, 100)]),
    "bessel_i0e": Function(lax.bessel_i0e, functools.partial(_bessel, 0), [(-20, 20)]),
    "bessel_i1e": Function(lax.bessel_i1e, functools.partial(_bessel, 1), [(-20, 20)]),
    "zeta": Function(lax.zeta, mpmath.zeta, [(1.1, 20), (0.1, 20)]),
    "polygamma": Function(lax.polygamma, _polygamma, [(1, 6), (0.1, 20)]),
    "igamma": Function(lax.igamma, _igamma, [(0.1, 50), (0.1, 50)]),
    "igammac": Function(lax.igammac, _igammac, [(0.1, 50), (0.1, 50)]),
    "igamma_grad_a": Function(lax.igamma_grad_a, _igamma_grad_a, [(0.1, 20), (0.1, 20)]),
    "random_gamma_grad": Function(
        lax.random_gamma_grad, _random_gamma_grad, [(0.1, 20), (0.1, 20)]
    ),
}


def points(name: str, dtype: Any, count: int) -> list[np.ndarray]:
    """The operands of a function, always the same; at most `COUNT` of them."""
    rng = np.random.default_rng(0)
    operands = [rng.uniform(low, high, COUNT)[:count] for low, high in FUNCTIONS[name].ranges]
    if name == "polygamma":
        operands[0] = np.floor(operands[0])
    return [x.astype(dtype) for x in operands]


# Functions with zeros at irrational places, near which no number of digits can be right.
_WITH_ZEROS = ("lgamma", "digamma")


def errors(name: str, values: np.ndarray, exact: Sequence[Any]) -> list[float]:
    """Errors of results, in units in the last place of the exact ones that do not underflow.

    They are in units in the last place of 1 where a function with zeros is smaller than that.
    """
    info = np.finfo(values.dtype)
    least = 1.0 if name in _WITH_ZEROS else 0.0
    result = []
    for value, x in zip(values, exact, strict=True):
        if not float(info.tiny / info.eps) < max(abs(x), least) < float(info.max):
            continue
        exponent = int(mpmath.floor(mpmath.log(max(abs(x), least), 2)))
        unit = mpmath.ldexp(1, exponent - int(info.nmant))
        result.append(float(abs(mpmath.mpf(float(value)) - x) / unit))
    return result


def measure(name: str, dtype: Any, count: int = COUNT) -> dict[str, float]:
    """The worst errors of a function: ours, JAX's, and JAX's where it runs one op after the other.

    A compiled program of JAX adds a product to a number with one rounding, and one op cannot.
    """
    function = FUNCTIONS[name]
    args = points(name, dtype, count)
    with mpmath.workdps(40):
        exact = [function.reference(*map(mpmath.mpf, map(float, row))) for row in zip(*args)]
        exact = [mpmath.re(x) for x in exact]
        ours = tf.function(lowering.convert(function.fun, target="tf"), autograph=False)
        results = {"ours": ours(*map(tf.constant, args)).numpy()}
        results["jax"] = np.asarray(jax.jit(function.fun)(*args))
        with jax.disable_jit():
            results["jax_op_by_op"] = np.asarray(function.fun(*map(jnp.asarray, args)))
        return {
            who: float(f"{max(errors(name, x, exact)):.3g}") for who, x in sorted(results.items())
        }


def main() -> None:
    """Measures all functions, and writes what it finds."""
    with jax.enable_x64(True):
        measured = {
            name: {np.dtype(dtype).name: measure(name, dtype) for dtype in DTYPES}
            for name in FUNCTIONS
        }
    PATH.write_text(json.dumps({"jax": jax.__version__, "errors": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
