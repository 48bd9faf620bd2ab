"""Caches of what is computed from a jaxpr, for as long as the jaxpr lives.

A jaxpr holds the constants of the user, which may be large. So a cache must not keep it alive.
"""

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from lowering.passes.jaxprs import Jaxpr


class PerJaxpr:
    """A function `fun(jaxpr, *args)` that is called once for a jaxpr and hashable arguments.

    What it returns may be the jaxpr itself, but may not hold it otherwise.
    """

    def __init__(self, fun: Callable[..., Any]):
        self._fun = fun
        self._results: weakref.WeakKeyDictionary[Jaxpr, dict[Hashable, Any]]
        self._results = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, fun)

    def __call__(self, jaxpr: Jaxpr, *args: Hashable) -> Any:
        results = self._results.setdefault(jaxpr, {})
        if args not in results:
            result = self._fun(jaxpr, *args)
            # If two threads come here, both take the result of the first: it has an identity.
            results.setdefault(args, None if result is jaxpr else result)
        found = results[args]
        return jaxpr if found is None else found

    def clear(self) -> None:
        """Forgets all results."""
        self._results.clear()
