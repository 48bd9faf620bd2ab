"""The target that ops are made for now."""

import contextlib
import contextvars
from collections.abc import Iterator

from lowering.targets.folders import TF
from lowering.targets.target import Target

# Ops that are made for no target are for TensorFlow.
_CURRENT: contextvars.ContextVar[Target] = contextvars.ContextVar("target", default=TF)


def current() -> Target:
    """The target that ops are made for now, and its capabilities."""
    return _CURRENT.get()


@contextlib.contextmanager
def lowering_for(target: Target) -> Iterator[None]:
    """A context in which ops are made for a target."""
    token = _CURRENT.set(target)
    try:
        yield
    finally:
        _CURRENT.reset(token)
