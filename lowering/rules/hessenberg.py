"""Reductions of matrices to Hessenberg and to tridiagonal form; NaN in a matrix gives NaN."""

from lowering.linalg import householder
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition

decomposition("hessenberg", traits=Trait.LONG)(on_batches(householder.hessenberg))
decomposition("tridiagonal", traits=Trait.LONG)(on_batches(householder.tridiagonal))
