"""Limitations of cholesky."""

from limitations.limitation import Limitation, Looser

LIMITATIONS = {
    "cholesky": [
        Limitation(
            "XLA's own Cholesky decomposition, into which TensorFlow's op compiles, divides an "
            "infinite column by its infinite diagonal and gives NaN where LAPACK gives infinity.",
            looser=Looser.NAN_REACHES,
            modes=("compiled",),
            variants=None,
            where=lambda case, params: case.startswith("inf_"),
        ),
    ],
}
