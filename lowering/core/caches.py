"""The caches of a traced program, so that no part of it is made twice.

They are owned by what `convert` keeps for the program, and freed with it: equations have the user's
constants in them.
"""

import dataclasses

from lowering.core.folding import Folder
from lowering.ops.bounded import Bounded
from lowering.ops.outlining import Functions

# How many decompositions of the user's own computations are kept for a program.
_DECOMPOSITIONS = 256


@dataclasses.dataclass(frozen=True)
class Caches:
    """The caches of a program. Several threads may lower it at once.

    Attributes:
      folder: what has been folded in it.
      functions: the TensorFlow functions that its eager execution calls.
      decompositions: traced decompositions whose parameters are jaxprs of the program.
    """

    folder: Folder = dataclasses.field(default_factory=Folder)
    functions: Functions = dataclasses.field(default_factory=Functions)
    decompositions: Bounded = dataclasses.field(default_factory=lambda: Bounded(_DECOMPOSITIONS))
