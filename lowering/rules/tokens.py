"""Tokens, by which JAX orders effects. Nothing reads them: TensorFlow orders its ops itself."""

import numpy as np

from lowering.ops import constant
from lowering.registry import rule


@rule("create_token", "after_all")
def token(ctx, *tokens):
    return constant(np.zeros(0, np.bool_))
