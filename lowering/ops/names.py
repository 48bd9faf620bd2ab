"""Names of ops and scopes: what TensorFlow permits of what people write."""

import contextlib
import functools
import re
import unicodedata

import tensorflow as tf

from lowering.ops import modes

_NOT_PERMITTED = re.compile(r"[^A-Za-z0-9_.\-]+")
# Names are keys of many tables, and each op in a scope repeats that of the scope.
_LONGEST = 100


def for_op(text: str) -> str:
    """A text as the name of an op or of one scope: letters, digits and `_.-`.

    It may be empty. It does not begin with an underscore, with which TensorFlow's own names begin.
    """
    if not text.isascii():  # Letters lose their accents.
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _NOT_PERMITTED.sub("_", text).lstrip("_-").rstrip("_")[:_LONGEST]


@functools.lru_cache(maxsize=4096)
def for_scope(scopes: str) -> str:
    """Scopes separated by slashes, each as TensorFlow permits it; those without a name left out."""
    return "/".join(filter(None, map(for_op, scopes.split("/"))))


class Scopes(contextlib.ExitStack):
    """Puts ops into name scopes, one after the other, inside the scope that they are made in."""

    def __init__(self):
        super().__init__()
        self._current = ""
        scope = tf.compat.v1.get_default_graph().get_name_scope()
        self._outer = f"{scope}/" if scope else ""

    def enter(self, scope: str) -> None:
        """Leaves the scope of the equation before for that of an equation, which may be empty."""
        if modes.is_eager():
            return
        scope = for_scope(scope)
        if scope == self._current:
            return
        self.close()
        self._current = scope
        if scope:
            # A trailing slash re-enters the scope; without it TensorFlow would make a new one.
            self.enter_context(tf.name_scope(f"{self._outer}{scope}/"))
