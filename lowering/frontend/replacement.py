"""Replaces entries of dictionaries, such as modules by their names, for a while."""

import contextlib
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

# What an entry was before, if there was none.
_MISSING = object()


class Replacement:
    """Entries that have other values while anybody wants them to, in all threads.

    Several threads may want it at once: the first one replaces, and the last one restores.
    """

    def __init__(self, find: Callable[[], Sequence[tuple[MutableMapping[str, Any], str, Any]]]):
        """
        Args:
          find: finds what to replace: dictionaries, keys and values. It is called each time that
            entries are about to be replaced.
        """
        self._find = find
        self._lock = threading.RLock()
        self._wanted = 0
        self._before: list[tuple[MutableMapping[str, Any], str, Any]] = []

    @property
    def is_active(self) -> bool:
        """Whether the entries are replaced."""
        return self._wanted > 0

    def want(self) -> None:
        """Replaces the entries, unless they are replaced already."""
        with self._lock:
            if not self._wanted:
                for entries, key, value in self._find():
                    self._before.append((entries, key, entries.get(key, _MISSING)))
                    entries[key] = value
            self._wanted += 1

    def release(self) -> None:
        """Undoes one `want`; the entries are restored when all are undone."""
        with self._lock:
            self._wanted -= 1
            while self._before and not self._wanted:
                entries, key, value = self._before.pop()
                if value is _MISSING:
                    del entries[key]
                else:
                    entries[key] = value

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """A context in which the entries are replaced."""
        self.want()
        try:
            yield
        finally:
            self.release()
