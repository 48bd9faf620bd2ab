"""Functions for rules: each makes a TensorFlow op.

The op runs in a dtype for which TensorFlow has a kernel. A constant is made once for each graph.
"""

from lowering.ops import substitutes  # noqa: F401  Registers them.
from lowering.ops.constants import constant, integers, vector
from lowering.ops.emission import bitcast, cast, emit, move

__all__ = ["bitcast", "cast", "constant", "emit", "integers", "move", "vector"]
