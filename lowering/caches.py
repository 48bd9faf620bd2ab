"""Caches that neither grow without a limit nor keep alive what they belong to.

A process may convert programs for months, and programs hold large constants. What a graph of
TensorFlow needs once is kept with the graph, by `ops/memo.py`.
"""

import collections
import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any


class Bounded:
    """Values by key. If there are too many, the one that was used the longest ago is dropped.

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
        """The value of a key, which `make()` returns if it is not in the cache."""
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


class PerJaxpr:
    """A function `fun(jaxpr, *args)` whose results are kept for as long as the jaxpr lives.

    It is called once for a jaxpr and hashable arguments. What it returns may be the jaxpr itself,
    but may not hold it otherwise.
    """

    def __init__(self, fun: Callable[..., Any]):
        self._fun = fun
        self._results: weakref.WeakKeyDictionary[Any, dict[Hashable, Any]]
        self._results = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, fun)

    def __call__(self, jaxpr: Any, *args: Hashable) -> Any:
        results = self._results.setdefault(jaxpr, {})
        if args not in results:
            result = self._fun(jaxpr, *args)
            # If two threads come here, both take the result of the first: it has an identity.
            results.setdefault(args, None if result is jaxpr else result)
        found = results[args]
        return jaxpr if found is None else found

    def clear(self) -> None:
        """Drops all results."""
        self._results.clear()
