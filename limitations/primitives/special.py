"""Limitations of special functions."""

from limitations.consumers import FLUSHED, FLUSHED_BY_LITERT

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED,)),
    **dict.fromkeys(("zeta", "polygamma"), (FLUSHED_BY_LITERT,)),
}
