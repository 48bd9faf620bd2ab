"""Names of ops and scopes: what TensorFlow permits of what people write."""

import functools
import re
import unicodedata

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
