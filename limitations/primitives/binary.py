"""Arithmetic primitives of two operands."""

from limitations import Limitation

_OVERFLOW = (
    Limitation(
        reason="Eigen multiplies and divides complex numbers by the textbook formulas, in which "
        "infinite, overflowing and zero operands give NaN instead of an infinity or zero.",
        looser="or_nan",
        modes=("eager", "graph"),
        where=lambda case, params: case.startswith("overflow_"),
    ),
)

LIMITATIONS = {"mul": _OVERFLOW, "div": _OVERFLOW}
