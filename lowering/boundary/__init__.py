"""Where values enter and leave programs, in dtypes that differ from those that programs have.

`tensors` is for the tensors of a graph, `models` for the arrays of exported models.
"""

from lowering.boundary.tensors import enter, joined, leave, parts, shaped_alike, split

__all__ = ["enter", "joined", "leave", "parts", "shaped_alike", "split"]
