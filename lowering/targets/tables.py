"""What the consumers of graphs run: for each op, the dtypes that are accepted.

The tables are found by `tools/probe_consumers.py` with the real converters and runtimes.
"""

import functools
import json
import pathlib
from collections.abc import Mapping, Sequence

FOLDER = pathlib.Path(__file__).parent / "tables"


@functools.cache
def table(consumer: str) -> Mapping[str, frozenset[str]]:
    """The dtypes that a consumer accepts for each op, by the name of the op.

    The dtype of a `Cast` is a pair, such as "int32->float32".
    """
    path = FOLDER / f"{consumer}.json"
    ops = json.loads(path.read_text())["ops"] if path.exists() else {}
    return {op: frozenset(dtypes) for op, dtypes in ops.items()}


def write(consumer: str, versions: Mapping[str, str], ops: Mapping[str, Sequence[str]]) -> None:
    """Writes the table of a consumer; `versions` are those of its converter and runtime."""
    FOLDER.mkdir(exist_ok=True)
    data = {"versions": versions, "ops": {op: sorted(ops[op]) for op in sorted(ops)}}
    (FOLDER / f"{consumer}.json").write_text(json.dumps(data, indent=1) + "\n")
