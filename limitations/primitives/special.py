"""Limitations of special functions."""

from limitations.consumers import FLUSHED, LARGE_LOGARITHMS

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED,)),
    "digamma": [LARGE_LOGARITHMS],
}
