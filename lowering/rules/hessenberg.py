"""Reductions of matrices to Hessenberg and to tridiagonal form; NaN in a matrix gives NaN."""

from lowering.linalg import householder
from lowering.linalg.batching import on_batches
from lowering.registry import decomposition

decomposition("hessenberg")(on_batches(householder.hessenberg))
decomposition("tridiagonal")(on_batches(householder.tridiagonal))
