"""Quirks: what a converter or runtime computes wrong, or refuses though it documents it."""

import dataclasses
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any


class _OnDemand(types.ModuleType):
    """A module that is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


# The modules that have the quirks of a target: of what makes its models, and of what runs them.
_MODULES = ("quirks", "runtime_quirks")

# For reproducers: quirks are known without TensorFlow.
tf: Any = _OnDemand("tensorflow")


@dataclasses.dataclass(frozen=True)
class Quirk:
    """One thing that somebody else's code gets wrong, and who works around it here.

    Attributes:
      name: its name in the module `quirks` or `runtime_quirks` of the target.
      target: the name of the target, or "grappler".
      happens: what happens.
      link: the upstream source that does it, or an issue.
      versions: the versions that it was seen with, by package.
      reproduce: whether it still happens. It needs nothing of this package. For TF.js it gives
        the body of a function of `tf`, in JavaScript, that returns this.
      around: the functions that work around it, each as "module.name".
      backend: the backend of TF.js that it is of: "cpu", "wasm" or "webgl".
      ends_process: whether what happens is that the process ends.
    """

    name: str
    target: str
    happens: str
    link: str
    versions: Mapping[str, str]
    reproduce: Callable[[], Any]
    around: tuple[str, ...]
    backend: str | None = None
    ends_process: bool = False


def known(target: str) -> dict[str, Quirk]:
    """The quirks of a target, by name; none if it has no module for them."""
    found: dict[str, Quirk] = {}
    for name in _MODULES:
        name = f"{__package__}.{target}.{name}"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.rpartition(".")[0]):
                raise
            continue
        found |= {key: value for key, value in vars(module).items() if isinstance(value, Quirk)}
    return found


def quirks_of(
    target: str, versions: Mapping[str, str]
) -> Callable[..., Callable[[Callable[[], Any]], Quirk]]:
    """A decorator that makes a quirk of the function that reproduces it.

    Its docstring says what happens; `link`, `around` and the rest are given to the decorator.
    """

    def quirk(link: str, around: str | tuple[str, ...], **options: Any) -> Callable[..., Quirk]:
        def decorate(reproduce: Callable[[], Any]) -> Quirk:
            return Quirk(
                name=reproduce.__name__,
                target=target,
                happens=reproduce.__doc__ or "",
                link=link,
                versions=versions,
                reproduce=reproduce,
                around=(around,) if isinstance(around, str) else around,
                **options,
            )

        return decorate

    return quirk
