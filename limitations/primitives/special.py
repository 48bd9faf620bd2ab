"""Limitations of special functions."""

import dataclasses

from limitations.consumers import FLUSHED, FLUSHED_BY_LITERT

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED,)),
    "zeta": (FLUSHED_BY_LITERT,),
    "polygamma": (dataclasses.replace(FLUSHED_BY_LITERT, dtypes=("float32",)),),
}
