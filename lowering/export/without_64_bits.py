"""Exports in 32 bits, for runtimes that lack arithmetic of 64 bits, or a part of it."""

import contextlib
import warnings
from collections.abc import Iterator

import jax
import numpy as np

from lowering import callables
from lowering.errors import LoweringError, UnsupportedError
from lowering.targets import Target


@contextlib.contextmanager
def in_bits_of(target: Target) -> Iterator[None]:
    """A context in which JAX traces functions in the bits of a target.

    For a target without arithmetic of 64 bits, that is without `jax_enable_x64`. There is a warning
    if the user has set it.

    Raises:
      UnsupportedError: if a number of the program has more than 32 bits.
    """
    if target.has_64_bits or not _is_of_64_bits():
        yield
        return
    warnings.warn(
        f"{target.name} computes with 32 bits: float64, int64, uint64 and complex128 become "
        "float32, int32, uint32 and complex64, as if jax_enable_x64 were not set",
        stacklevel=4,
    )
    with jax.enable_x64(False):
        try:
            yield
        except OverflowError as error:
            raise UnsupportedError.with_location(
                f"{target.name} computes with 32 bits, and a number of the program needs more: "
                f"{error}{callables.place(error)}. Use numbers that 32 bits hold, or "
                "export.to_onnx, which computes with 64 bits"
            ) from error
        except TypeError as error:
            error.add_note(
                "arrays of 64 bits that a function closes over stay so, and JAX may refuse them "
                "beside others of 32; pass them as params"
            )
            raise


@contextlib.contextmanager
def advising_32_bits(runtime: str) -> Iterator[None]:
    """A context in which errors say how to export in 32 bits, where the user has enabled 64 bits.

    Args:
      runtime: who lacks some ops of 64 bits.
    """
    try:
        yield
    except LoweringError as error:
        if _is_of_64_bits():
            error.add_note(
                f"{runtime} lacks some ops of 64 bits; inside of `with jax.enable_x64(False):` the "
                "program is exported in 32 bits"
            )
        raise


def _is_of_64_bits() -> bool:
    """Whether `jax_enable_x64` is set, here or as a whole."""
    return jax.dtypes.canonicalize_dtype(np.float64) == np.float64
