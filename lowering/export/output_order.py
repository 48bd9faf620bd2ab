"""The order of the outputs of a SavedModel, whose signatures are maps without one.

It is a file in `assets.extra`, a directory of a SavedModel for what TensorFlow does not load. A
model without the file, such as one that somebody has saved anew, has its outputs sorted by name.
"""

import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

# Its keys are the names of signatures, and its values lists of the names of outputs.
_FILE = pathlib.Path("assets.extra", "lowering_outputs.json")


def write(folder: pathlib.Path, outputs: Mapping[str, Sequence[str]]) -> None:
    """Writes the names of the outputs of each signature, in their order, into a SavedModel."""
    file = folder / _FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({name: list(names) for name, names in outputs.items()}))


def read(folder: pathlib.Path) -> Mapping[str, Sequence[str]]:
    """The names that `write` has written; nothing if there is no such file, or another's."""
    try:
        found = json.loads((folder / _FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def ordered(names: Iterable[str], written: Sequence[str]) -> list[str]:
    """Names in the written order if it has the same names; else sorted, `x_2` before `x_10`."""
    names = list(names)
    return list(written) if sorted(written) == sorted(names) else sorted(names, key=_parts)


def _parts(name: str) -> list[tuple[int, str]]:
    """The key by which a name is sorted, so that `x_2` is before `x_10`."""
    found = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in found]
