"""Harnesses: for each primitive, the cases that exercise it, and how they are run and compared."""

import jax

# Collectives need several devices. JAX reads their number before it runs anything.
jax.config.update("jax_num_cpu_devices", 8)

from harnesses.harness import Harness, all_harnesses, harnesses  # noqa: E402

__all__ = ["Harness", "all_harnesses", "harnesses"]
