"""Functions of the graph: parts of a program that are lowered once and called.

They are jaxprs that are called several times, programs for vectors of any length, and loops that
run eagerly. A known operand is part of a function, so that its body can be folded.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from lowering import avals
from lowering.caches import Bounded
from lowering.ops import constants, dtypes, optimizer, values
from lowering.ops.values import Value

# How many functions are kept for a graph, or for a program that is executed eagerly.
_LIMIT = 512


class Functions:
    """Functions that have been made, by what they do.

    A graph has its own, and so has a program that is executed eagerly; they are freed with it.
    """

    def __init__(self, limit: int = _LIMIT):
        """`limit` is how many are kept; the one called the longest ago is forgotten first."""
        self._functions = Bounded(limit)

    def __len__(self) -> int:
        return len(self._functions)

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
        # Weights are lowered to other ops than arrays that are computed.
        weights = tuple(_is_weight(x) for x, k in zip(operands, is_known, strict=True) if not k)
        key = (
            key,
            tuple(variables),
            weights,
            *(
                values.fingerprint(x) if k else None
                for x, k in zip(operands, is_known, strict=True)
            ),
        )

        def make():
            @tf.function(autograph=False)
            def function(*arguments):
                rest = iter(arguments)
                inner = {name: next(rest) for name in variables}
                given = arguments[len(variables) :]
                constants.mark_weights(x for x, w in zip(given, weights, strict=True) if w)
                results = lower(
                    inner,
                    *(x if k else next(rest) for x, k in zip(operands, is_known, strict=True)),
                )
                optimizer.keep(results)
                return results

            specs = [
                *(tf.TensorSpec((), tf.int32) for _ in variables),
                *(spec(a) for a, k in zip(operand_avals, is_known, strict=True) if not k),
            ]
            return function.get_concrete_function(*specs), kept

        concrete, _ = self._functions.get(key, make)
        tensors = [values.full(x) for x, k in zip(operands, is_known, strict=True) if not k]
        optimizer.keep(tensors)
        return _without_gradient(concrete, [*variables.values(), *tensors])


def _is_weight(x: Any) -> bool:
    """Whether an operand is a weight of the graph that calls; eagerly there are none."""
    x = values.full(x)
    return tf.is_symbolic_tensor(x) and constants.is_weight(x)


def _without_gradient(concrete: Any, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Calls a function of which TensorFlow is not to make a gradient, even under a tape.

    The gradient of a program is that of JAX. TensorFlow would make its own as soon as the function
    is called, and fail if an op in it has none.
    """

    def refuse(*cotangents):
        raise LookupError("a function of a lowered program has no gradient of its own")

    with record.stop_recording():
        results = list(concrete(*tensors))
    # Tapes have to know that the results depend on the tensors, to ask for the gradient of JAX.
    # Forward accumulators transpose that gradient, and take no part in this.
    record.record_operation_backprop_only("LoweredFunction", results, tensors, refuse)
    return results


def spec(aval: Any) -> tf.TensorSpec:
    """The tensor that holds a value of an abstract value."""
    shape = avals.static_shape(avals.physical_shape(aval))
    return tf.TensorSpec(shape, dtypes.to_tf(aval.dtype))
