"""Limitations of special functions."""

from limitations.consumers import FLUSHED, huge_numbers

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED,)),
    "digamma": [huge_numbers("gives infinity for the logarithms of the largest numbers")],
}
