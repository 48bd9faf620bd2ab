"""Exports of 32 bits, for runtimes that have no arithmetic of 64 bits."""

import contextlib
import warnings
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def in_32_bits(runtime: str) -> Iterator[None]:
    """A context in which a function is what JAX makes of it without `jax_enable_x64`.

    Args:
      runtime: who has no more than 32 bits, to warn of it where the user has enabled 64 bits.
    """
    if jax.config.jax_enable_x64:
        warnings.warn(
            f"{runtime} computes with 32 bits: float64, int64, uint64 and complex128 are exported "
            "as float32, int32, uint32 and complex64, as if jax_enable_x64 were not set",
            stacklevel=4,
        )
    with jax.enable_x64(False):
        yield
