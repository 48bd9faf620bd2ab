"""Looser comparers, which limitations name: what holds where results are not equal to JAX's."""

from harnesses.linalg import nan_reaches

__all__ = ["nan_reaches"]
