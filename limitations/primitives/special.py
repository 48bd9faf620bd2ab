"""Limitations of special functions."""

from limitations.consumers import FLUSHED, FLUSHED_BY_LITERT, LARGE_LOGARITHMS, ROOTS

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED,)),
    **dict.fromkeys(("zeta", "polygamma"), (FLUSHED_BY_LITERT,)),
    **dict.fromkeys(("bessel_i0e", "bessel_i1e"), (ROOTS,)),
    "digamma": [LARGE_LOGARITHMS],
}
