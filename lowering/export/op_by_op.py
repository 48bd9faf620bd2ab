"""Whether a model computes what JAX computes of NaN when it does not compile a whole function.

XLA fuses the ops of a compiled function, and what they make of NaN together may differ from what
each makes of it alone: `jnp.maximum(x, 0) >= 0` is true for NaN in a fusion, and false op by op.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering.export.differences import are_nan, difference
from lowering.export.entry import Reference
from lowering.passes.inlining import inline_calls


def agreeing(
    reference: Reference,
    samples: Sequence[np.ndarray],
    outputs: Mapping[int, tuple[np.ndarray, float]],
) -> list[int]:
    """The indices of the outputs of a model that equal JAX's when it runs op by op.

    JAX runs op by op only if an input or one of these outputs has NaN; else there are none.

    Args:
      reference: the JAX function.
      samples: inputs of it.
      outputs: by index, outputs of the model and how far they may be from JAX's, relative to its
        largest element.
    """
    if not any(are_nan(x).any() for x in (*samples, *(actual for actual, _ in outputs.values()))):
        return []
    arguments = reference.arguments(samples)
    closed, shapes = jax.make_jaxpr(reference.fun, return_shape=True)(*arguments)
    # Each equation is run by itself, and a loop or a branch as a whole.
    found = jex_core.jaxpr_as_fun(inline_calls(closed, frozenset()))(*jax.tree.leaves(arguments))
    results = reference.results(jax.tree.unflatten(jax.tree.structure(shapes), found))
    return [
        place
        for place, (actual, accepted) in outputs.items()
        if _is_near(results[place], actual, accepted)
    ]


def _is_near(expected: np.ndarray, actual: np.ndarray, accepted: float) -> bool:
    found = difference(expected, actual)
    return not found.nan_of_jax and not found.nan_of_model and found.error <= accepted
