"""Functions of the graph: parts of a program that are lowered once and called.

They are jaxprs that are called several times, programs for vectors of any length, and loops that
run eagerly. A known operand is part of a function, so that its body can be folded.
"""

import collections
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from lowering import avals
from lowering.ops import dtypes, modes, values
from lowering.ops.values import Value
from lowering.targets import Mode

# How many functions are kept; the one that was called the longest ago is forgotten first.
_LIMIT = 512


class Functions:
    """Functions that have been made, by what they do."""

    def __init__(self):
        self._functions: collections.OrderedDict[Any, Any] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._functions)

    def clear(self) -> None:
        """Forgets all functions."""
        self._functions.clear()

    def call(
        self,
        key: Hashable,
        lower: Callable[..., Sequence[tf.Tensor]],
        operands: Sequence[Value],
        operand_avals: Sequence[Any],
        variables: Mapping[str, tf.Tensor],
        *kept: Any,
    ) -> list[tf.Tensor]:
        """Calls a function, which is made unless there is one for the key and the known operands.

        Args:
          key: what the function does. It may hold identities of objects.
          lower: makes its ops, given the values of dimension variables by name, and the operands.
            It uses no other tensors.
          operands: tensors, which are arguments of the function, and known values, which are part
            of it.
          operand_avals: the abstract value of each.
          variables: the values of dimension variables, which are arguments of the function too.
          *kept: the objects of the key; they are kept, so that their identities stay their own.
        """
        is_known = [values.is_known(x) for x in operands]
        key = (
            key,
            tuple(variables),
            *(
                values.fingerprint(x) if k else None
                for x, k in zip(operands, is_known, strict=True)
            ),
        )
        if key not in self._functions:

            @tf.function(autograph=False)
            def function(*arguments):
                rest = iter(arguments)
                inner = {name: next(rest) for name in variables}
                return lower(
                    inner,
                    *(x if k else next(rest) for x, k in zip(operands, is_known, strict=True)),
                )

            specs = [
                *(tf.TensorSpec((), tf.int32) for _ in variables),
                *(_spec(a) for a, k in zip(operand_avals, is_known, strict=True) if not k),
            ]
            self._functions[key] = function.get_concrete_function(*specs), kept
            if len(self._functions) > _LIMIT:
                self._functions.popitem(last=False)
        self._functions.move_to_end(key)
        concrete, _ = self._functions[key]
        tensors = [values.full(x) for x, k in zip(operands, is_known, strict=True) if not k]
        return list(concrete(*variables.values(), *tensors))


# Those of eager execution. A graph has its own, which are freed with it.
EAGER = Functions()


def functions() -> Functions:
    """The functions that a program which is lowered now can call."""
    return EAGER if modes.current() is Mode.EAGER else Functions()


def _spec(aval: Any) -> tf.TensorSpec:
    """The tensor that holds a value of an abstract value."""
    shape = avals.static_shape(avals.physical_shape(aval))
    return tf.TensorSpec(shape, dtypes.to_tf(aval.dtype))
