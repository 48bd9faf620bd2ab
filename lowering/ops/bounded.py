"""A cache of bounded size, which keeps the values of the last few keys.

A process may convert programs for months, so that nothing may be remembered without a limit.
"""

import collections
import threading
from collections.abc import Callable, Hashable
from typing import Any


class Bounded:
    """Values by key; the one that was asked for the longest ago is forgotten first.

    Several threads may share one. None of them waits while another makes a value; if two make one
    for the same key, both get that of the first.
    """

    def __init__(self, limit: int):
        """`limit` is how many values are kept."""
        self._limit = limit
        self._values: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of a key, which `make()` returns if it is not remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            value = self._values.setdefault(key, made)
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value
