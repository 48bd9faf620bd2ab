"""TensorFlow ops as they have to be: in a dtype that has a kernel, and constants once per graph."""

from lowering.ops import substitutes  # noqa: F401  Registers them.
from lowering.ops.constants import constant, integers
from lowering.ops.emission import bitcast, cast, emit, move

__all__ = ["bitcast", "cast", "constant", "emit", "integers", "move"]
