"""Limitations: for each primitive, which cells are known not to be equal to JAX."""

from limitations.limitation import Limitation, Looser, all_limitations, limitations_of

__all__ = ["Limitation", "Looser", "all_limitations", "limitations_of"]
