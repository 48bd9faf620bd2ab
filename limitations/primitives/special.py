"""Limitations of special functions."""

import dataclasses

from limitations.consumers import FLUSHED, FLUSHED_BY_LITERT, FLUSHED_DOUBLES

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED, FLUSHED_DOUBLES)),
    "zeta": (FLUSHED_BY_LITERT, FLUSHED_DOUBLES),
    "polygamma": (
        dataclasses.replace(FLUSHED_BY_LITERT, dtypes=("float32",)),
        FLUSHED_DOUBLES,
    ),
}
