"""Attributes of modules that are replaced for a while, for all threads of the process."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# What an attribute was before, if there was none.
_MISSING = object()


class Replacement:
    """Attributes of objects that have other values while anybody wants them to.

    Several threads may want it at once: the first one replaces, and the last one restores.
    """

    def __init__(self, find: Callable[[], Sequence[tuple[Any, str, Any]]]):
        """
        Args:
          find: what to replace: objects, names of their attributes, and values. It is called
            whenever something is to be replaced.
        """
        self._find = find
        self._lock = threading.RLock()
        self._wanted = 0
        self._before: list[tuple[Any, str, Any]] = []

    @property
    def is_active(self) -> bool:
        """Whether the attributes are replaced."""
        return self._wanted > 0

    def want(self) -> None:
        """Replaces the attributes, unless they are replaced already."""
        with self._lock:
            if not self._wanted:
                for owner, name, value in self._find():
                    self._before.append((owner, name, vars(owner).get(name, _MISSING)))
                    setattr(owner, name, value)
            self._wanted += 1

    def release(self) -> None:
        """Undoes one `want`; the attributes are restored when all are undone."""
        with self._lock:
            self._wanted -= 1
            while self._before and not self._wanted:
                owner, name, value = self._before.pop()
                if value is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """A context in which the attributes are replaced."""
        self.want()
        try:
            yield
        finally:
            self.release()
