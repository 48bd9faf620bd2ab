"""Tokens, by which JAX orders effects. TensorFlow has its own ways, so that nothing uses them."""

import numpy as np

from lowering.ops import constant
from lowering.registry import rule


@rule("create_token", "after_all")
def token(ctx, *tokens):
    return constant(np.zeros(0, np.bool_))
