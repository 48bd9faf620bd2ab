"""Reductions of matrices to Hessenberg and to tridiagonal form; NaN in a matrix gives NaN."""

from lowering.linalg import householder
from lowering.registry import decomposition
from lowering.rules.qr import on_batches

decomposition("hessenberg")(on_batches(householder.hessenberg))
decomposition("tridiagonal")(on_batches(householder.tridiagonal))
