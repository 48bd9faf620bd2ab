"""Writes the versions of packages that are installed here, for `pip install --constraint`.

    python -m tools.constraints

It writes constraints/python3.11.txt or that of another Python: the packages that lowering and its
extras need, as far as they are installed.
"""

import importlib.metadata
import pathlib
import sys
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[1]


def lines() -> list[str]:
    """A line for each package: its name and version."""
    found: dict[str, str] = {}
    pending = list(_requirements("lowering", every_extra=True))
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        requirement = pending.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen or key[0] == "lowering":
            continue
        seen.add(key)
        try:
            found[key[0]] = importlib.metadata.version(key[0])
        except importlib.metadata.PackageNotFoundError:
            continue
        pending += _requirements(key[0], extras=key[1])
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _requirements(
    name: str, extras: frozenset[str] = frozenset(), every_extra: bool = False
) -> Iterator[Requirement]:
    """What a package needs in this environment, with some of its extras."""
    metadata = importlib.metadata.metadata(name)
    chosen = {"", *extras, *(metadata.get_all("Provides-Extra", []) if every_extra else ())}
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in chosen
        ):
            yield requirement


def main() -> None:
    """Writes the file."""
    path = ROOT / "constraints" / f"python{sys.version_info[0]}.{sys.version_info[1]}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["# Written by tools/constraints.py.", *lines(), ""]))
    print(f"{path.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
