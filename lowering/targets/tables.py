"""What the consumers of graphs run: for each op the dtypes that are accepted, and those refused.

For ops with a highest rank it is there, too.

The tables are found by `tools/probe_consumers.py` with the real converters and runtimes. What they
do not mention has not been tried.
"""

import functools
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence

FOLDER = pathlib.Path(__file__).parent / "tables"

Table = Mapping[str, frozenset[str]]


def table(consumer: str) -> Table:
    """The dtypes that a consumer accepts for each op, by the name of the op.

    The dtype of a `Cast` is a pair, such as "int32->float32".
    """
    return _read(consumer, "ops")


def refused(consumer: str) -> Table:
    """The dtypes of each op that the converter or the runtime of a consumer does not take."""
    return _read(consumer, "refused")


@functools.cache
def ranks(consumer: str) -> Mapping[str, int]:
    """The highest ranks of the operands of ops; those that are not there take any rank."""
    path = FOLDER / f"{consumer}.json"
    return json.loads(path.read_text()).get("ranks", {}) if path.exists() else {}


@functools.cache
def known(consumer: str) -> frozenset[str]:
    """The names of all ops that a consumer has, whatever the dtypes; only TF.js lists them."""
    return frozenset(json.loads(_known(consumer).read_text()))


def write_known(consumer: str, ops: Iterable[str]) -> None:
    """Writes the names of all ops that a consumer has."""
    _known(consumer).write_text(json.dumps(sorted(set(ops)), indent=1) + "\n")


def _known(consumer: str) -> pathlib.Path:
    return FOLDER / f"{consumer}_known.json"


@functools.cache
def _read(consumer: str, part: str) -> Table:
    path = FOLDER / f"{consumer}.json"
    ops = json.loads(path.read_text())[part] if path.exists() else {}
    return {op: frozenset(dtypes) for op, dtypes in ops.items()}


def write(
    consumer: str,
    versions: Mapping[str, str],
    ops: Mapping[str, Sequence[str]],
    refused: Mapping[str, Sequence[str]],
    ranks: Mapping[str, int],
) -> None:
    """Writes the tables of a consumer; `versions` are those of its converter and runtime."""
    FOLDER.mkdir(exist_ok=True)
    highest = dict(sorted(ranks.items()))
    data = {
        "versions": versions,
        "ops": _sorted(ops),
        "refused": _sorted(refused),
        "ranks": highest,
    }
    (FOLDER / f"{consumer}.json").write_text(json.dumps(data, indent=1) + "\n")


def _sorted(ops: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {op: sorted(ops[op]) for op in sorted(ops)}
