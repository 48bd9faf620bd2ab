"""Statements about sizes: decided where the sizes are known, else checked by ops.

Sizes that are not known yet are checked by two ops:

* an `Assert`, whose message names the argument, the dimension, the sizes and the specification;
* for XLA, which leaves out an `Assert`, a `BroadcastTo` to a shape that is wrong if the sizes are.
  XLA knows all sizes when it compiles, and refuses. Its message has the sizes, and the name of the
  op, which says what is wrong. TensorFlow's own kernel makes an empty tensor.
"""

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from lowering.ops import constant, names
from lowering.ops.dims import Size

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "!=": operator.ne,
}

_COMPARISON_OPS: Mapping[str, Callable[..., tf.Tensor]] = {
    "==": tf.equal,
    ">=": tf.greater_equal,
    "!=": tf.not_equal,
}


@dataclasses.dataclass(frozen=True)
class Check:
    """A comparison of sizes of which not all are known, and what to say if it is not true."""

    left: Size
    sign: str
    right: Size
    pieces: Sequence[str | Size]

    def assertion(self) -> tf.Operation:
        """An op that fails, when it runs or is compiled, if the comparison is not true."""
        holds = _COMPARISON_OPS[self.sign](self.left, self.right)
        stated = tf.raw_ops.Assert(condition=holds, data=_joined(self.pieces))
        with tf.control_dependencies([stated]):
            wrong = tf.cast(tf.logical_not(holds), tf.int32)
            shape = tf.stack([*(x for x in self.pieces if not isinstance(x, str)), wrong])
            name = names.for_op(sentence([x for x in self.pieces if isinstance(x, str)]))
            return tf.broadcast_to(constant([], "int32"), shape, name=name).op


def sentence(pieces: Sequence[str | Size]) -> str:
    """Pieces of a sentence as one string."""
    return " ".join(map(str, pieces)).replace(" ;", ";").replace(" ,", ",")


def _joined(pieces: Sequence[str | Size]) -> list[str | Size]:
    """Pieces of a sentence, those that are known joined to strings.

    TensorFlow would print a backslash before each quotation mark.
    """
    joined: list[str | Size] = []
    for piece in pieces:
        known = str(piece).replace("'", "`") if isinstance(piece, str | int) else None
        if known is not None and joined and isinstance(joined[-1], str):
            joined[-1] = sentence([joined[-1], known])
        else:
            joined.append(piece if known is None else known)
    return joined
