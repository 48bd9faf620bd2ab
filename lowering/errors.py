"""The exceptions that a caller of `convert` can meet.

AutoGraph, which is on by default in a `tf.function`, raises an exception again with a longer
message. It keeps the type only if it knows the constructor: that of `Exception`, or that of the
errors of TensorFlow. So none of these exceptions has one of its own.
"""

from typing import Self

import tensorflow as tf


class LoweringError(Exception):
    """A JAX program could not be turned into TensorFlow ops.

    The message names the primitive and the line of the user's program.

    Attributes:
      located: whether the message names them already.
    """

    __init__ = Exception.__init__
    located: bool = False

    @classmethod
    def with_location(cls, message: str) -> Self:
        """An error with a message that names the primitive and the user's line."""
        error = cls(message)
        error.located = True
        return error

    @property
    def reason(self) -> str:
        """The message."""
        return str(self)


class UnsupportedError(LoweringError, NotImplementedError):
    """The target cannot express a primitive with these dtypes or parameters.

    The message names the primitive, dtypes, target and the line of the user's program, and says
    what to do instead.
    """

    __init__ = Exception.__init__


class TransformationError(LoweringError, ValueError):
    """A converted function was called where only the JAX function can be: while JAX traces."""

    __init__ = Exception.__init__


class ShapeError(tf.errors.InvalidArgumentError, ValueError):
    """The sizes of arguments do not fit `polymorphic_shapes` or `polymorphic_constraints`.

    It is what the assertion of a graph raises when it runs, an `InvalidArgumentError`, and what a
    wrong argument raises in Python, a `ValueError`.
    """

    @classmethod
    def because(cls, message: str) -> Self:
        """An error with a message."""
        return cls(None, None, message)
