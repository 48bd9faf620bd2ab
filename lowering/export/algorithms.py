"""Products of named algorithms, as JAX computes them on devices that have no such algorithm.

`jax.nn.dot_product_attention` of float16 names one that JAX's CPU lacks.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex_core
from jax import lax

from lowering.passes.everywhere import Everywhere
from lowering.tensors.contractions import compute_dtypes


def on_every_device(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The JAX function, with dtypes in place of the `algorithm` of each `dot_general`."""

    def run(*args: Any) -> Any:
        jaxpr, shapes = jax.make_jaxpr(fun, return_shape=True)(*args)
        changed = Everywhere(_without_algorithm).jaxpr(jaxpr)
        results = jex_core.jaxpr_as_fun(changed)(*jax.tree_util.tree_leaves(args))
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), results)

    return run


def _without_algorithm(eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
    precision = eqn.params.get("precision")
    if not isinstance(precision, lax.DotAlgorithm | lax.DotAlgorithmPreset):
        return eqn
    (x_aval, y_aval), out = (x.aval for x in eqn.invars), eqn.outvars[0].aval
    x_dtype, y_dtype, sum_dtype = compute_dtypes(x_aval.dtype, y_aval.dtype, out.dtype, precision)

    @jax.jit
    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        params = {**eqn.params, "precision": None, "preferred_element_type": sum_dtype}
        found = eqn.primitive.bind(x.astype(x_dtype), y.astype(y_dtype), **params)
        return found.astype(out.dtype)

    (call,) = jax.make_jaxpr(product)(x_aval, y_aval).eqns
    return call.replace(invars=eqn.invars, outvars=eqn.outvars)
