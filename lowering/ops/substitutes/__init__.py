"""Ops in terms of others, for runtimes that lack them.

`emission` asks here if the runtime of the target takes an op in no dtype. A substitute is a
function of the same operands; it emits ops that may have substitutes themselves.
"""

# Each registers its own.
from lowering.ops.substitutes import (  # noqa: F401
    angles,
    error_functions,
    exponentials,
    functions,
    integers,
    movement,
)
