"""How large models may be, and what to do with larger ones.

A protobuf message and a flatbuffer have less than 2 GB. A format that is one of these holds no
more, however much memory the machine has.
"""

import math
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from lowering.errors import UnsupportedError
from lowering.frontend import refused

# The most bytes of weights, which leave a part of 2 GB for the graph.
LARGEST = 2_000_000_000


def check_weights(model: str, functions: Iterable[Any], part: float = 1) -> None:
    """Refuses functions whose weights are too large for a model, before they are converted.

    Args:
      model: what is written, as in "a TF Lite model".
      functions: concrete functions of TensorFlow, which may share variables.
      part: how much of each weight is kept in the file, as 1/4 where 32 bits become 8.

    Raises:
      UnsupportedError: if they have too many bytes.
    """
    _check(model, size_of_weights(functions) * part)


def size_of_weights(functions: Iterable[Any]) -> int:
    """The bytes of the variables, which functions may share, and of the constants."""
    functions = list(functions)
    variables = {id(v): v for function in functions for v in function.graph.variables}
    return sum(_size(v) for v in variables.values()) + sum(map(_of_constants, functions))


def check_params(model: str, params: Any, part: float = 1) -> None:
    """Refuses parameters that are too large for a model, before anything is lowered.

    Args:
      model: what is written, as in "a TF Lite model".
      params: a pytree of arrays, which have 32 bits in it.
      part: how much of each weight is kept in the file.

    Raises:
      UnsupportedError: if they have too many bytes.
    """
    leaves = jax.tree_util.tree_leaves(params)
    arrays = [x for x in leaves if hasattr(x, "dtype") and not refused.is_refused(x)]
    _check(model, 4 * part * sum(math.prod(x.shape) for x in arrays))


def _check(model: str, size: float) -> None:
    if size > LARGEST:
        raise UnsupportedError(
            f"{model} holds 2 GB, and the weights have {size / 1e9:.1f} GB in it. "
            "export.to_onnx with a path writes models of any size, and so does "
            "export.to_saved_model if the weights are in params"
        )


def check_constants(model: str, functions: Iterable[Any]) -> None:
    """Refuses a function whose constants are too large for a model; variables may be larger.

    Args:
      model: what is written, as in "a SavedModel".
      functions: concrete functions of TensorFlow.

    Raises:
      UnsupportedError: if those of one have too many bytes.
    """
    size = max(map(_of_constants, functions), default=0)
    if size > LARGEST:
        raise UnsupportedError(
            f"{model} holds 2 GB of constants, and the arrays that the function closes over have "
            f"{size / 1e9:.1f} GB. Those in params may have more"
        )


def _of_constants(function: Any) -> int:
    constants = (op for op in function.graph.get_operations() if op.type == "Const")
    return sum(_size(op.outputs[0]) for op in constants)


def _size(x: Any) -> int:
    """The bytes of a variable or a constant."""
    return int(np.prod(x.shape.as_list(), dtype=np.int64)) * x.dtype.size
