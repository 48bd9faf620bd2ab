"""The dtypes that dot products and convolutions compute in."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def compute_dtypes(
    lhs: np.dtype, rhs: np.dtype, out: np.dtype, precision: Any = None
) -> tuple[np.dtype, np.dtype, np.dtype]:
    """The dtypes in which to multiply, for the operands and for the result.

    Args:
      lhs, rhs, out: the dtypes of the primitive's operands and result.
      precision: the primitive's `precision`. A dot algorithm names its dtypes; the others are
        hints that change nothing on the CPU.
    """
    if isinstance(precision, lax.DotAlgorithm):
        return (
            np.dtype(precision.lhs_precision_type),
            np.dtype(precision.rhs_precision_type),
            np.dtype(precision.accumulation_type),
        )
    if isinstance(precision, lax.DotAlgorithmPreset):
        lhs = _supported(lhs, precision.supported_lhs_types)
        rhs = _supported(rhs, precision.supported_rhs_types)
        return lhs, rhs, _supported(out, precision.supported_output_types(lhs, rhs))
    # Operands are widened to the dtype of the result, but never narrowed.
    if lhs != rhs or _rank(out) > _rank(lhs):
        return out, out, out
    return lhs, lhs, lhs


def consumer_dtypes(
    lhs: np.dtype, rhs: np.dtype, out: np.dtype, precision: Any = None
) -> tuple[np.dtype, np.dtype, np.dtype]:
    """As `compute_dtypes`, for runtimes without float64, which ignore that it is asked for."""
    found = compute_dtypes(lhs, rhs, out, precision)
    if np.dtype(np.float64) in found and np.dtype(np.float64) not in (lhs, rhs, out):
        return compute_dtypes(lhs, rhs, out)
    return found


def _supported(dtype, supported):
    return dtype if supported is None or dtype in supported else np.dtype(supported[0])


def _rank(dtype):
    """Orders dtypes by what XLA calls their precision."""
    is_complex = jnp.issubdtype(dtype, np.complexfloating)
    real = np.finfo(dtype).dtype if is_complex else np.dtype(dtype)
    if real == np.bool_:
        return is_complex, -1, -1, 1, True
    if jnp.issubdtype(real, np.floating):
        info = jnp.finfo(real)
        return is_complex, info.maxexp, info.nmant, info.bits, True
    return is_complex, -1, -1, jnp.iinfo(real).bits, not jnp.issubdtype(real, np.unsignedinteger)
