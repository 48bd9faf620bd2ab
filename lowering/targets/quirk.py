"""Quirks: what a converter or runtime computes wrong, or refuses though it documents it."""

import dataclasses
from collections.abc import Callable, Mapping


@dataclasses.dataclass(frozen=True)
class Quirk:
    """One thing that somebody else's code gets wrong, and who works around it here.

    Attributes:
      target: the name of the target, or "grappler".
      happens: what happens, as sentences.
      link: the upstream source that does it, or an issue.
      versions: the versions that it was seen with, by package.
      reproduce: whether it still happens; needs nothing of this package but what runs a model in
        the runtime. For TF.js the body of such a function in JavaScript, of `tf`.
      around: what works around it, each as "module.function".
      backend: the backend of TF.js that it is of: "cpu", "wasm" or "webgl".
    """

    target: str
    happens: str
    link: str
    versions: Mapping[str, str]
    reproduce: Callable[[], bool] | str
    around: tuple[str, ...]
    backend: str | None = None
