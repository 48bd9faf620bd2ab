"""Writes the versions of packages that are installed here, for `pip install --constraint`.

    python -m tools.constraints

It writes constraints/python3.11.txt or that of another Python: the packages that lowering and its
extras need. Those that are not installed, as nobody tests with a viewer, have the versions that pip
would install beside the others. A package that does not fit them is left out, and said to be.
"""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[1]

_TENSORFLOW = ("tensorflow", "tensorflow-cpu")


def lines() -> list[str]:
    """A line for each package: its name and version."""
    found = _installed()
    # TensorFlow has both names in each version, and one of them is installed.
    versions = [found[name] for name in _TENSORFLOW if name in found]
    found |= dict.fromkeys(_TENSORFLOW, versions[0])
    for requirement in _requirements("lowering", every_extra=True):
        if canonicalize_name(requirement.name) not in {*found, "lowering"}:
            found |= _by_pip(requirement, found)
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _by_pip(requirement: Requirement, found: Mapping[str, str]) -> Mapping[str, str]:
    """What pip would install for a package, beside what is found; nothing if it does not fit."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{name}=={version}\n" for name, version in found.items())
        file.flush()
        text = f"{requirement.name}{requirement.specifier}"
        command = ["install", "--dry-run", "--quiet", "--report=-", f"--constraint={file.name}"]
        ended = subprocess.run(
            [sys.executable, "-m", "pip", *command, text],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if ended.returncode:
        print(f"{text} does not fit, and is left out", file=sys.stderr)
        return {}
    made = [x["metadata"] for x in json.loads(ended.stdout)["install"]]
    return {canonicalize_name(x["name"]): x["version"] for x in made}


def _installed() -> dict[str, str]:
    """The versions of packages that are installed."""
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
    return found


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
