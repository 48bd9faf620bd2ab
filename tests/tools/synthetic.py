"""Files of results of cells that no sweep has run."""

import contextlib
import pathlib
import random
from collections.abc import Iterable, Sequence
from typing import Any

from harnesses.cell import Verdict
from harnesses.database import Database, Row, Versions
from tests.harnesses.rows import row

VERSIONS = Versions("1.0", "1.0", "2.0", "3.0", "3.11.0")
DTYPES = (
    "bool int4 int8 int16 int32 int64 uint4 uint8 uint16 uint32 uint64 bfloat16 float16 float32 "
    "float64 complex64 complex128 float8_e4m3fn float8_e5m2 key<fry> key<rbg>"
).split()
MODES = tuple((target, mode) for target in ("tf", "xla") for mode in ("eager", "graph", "compiled"))


def cell(harness: str, verdict: Verdict = Verdict.EQUAL, **values: Any) -> Row:
    """The result of a cell, in eager mode on tf if nothing else is said."""
    fields = {
        "dtype": "float32",
        "mode": "eager",
        "target": "tf",
        "device": "cpu",
        "outcome": "equal" if verdict in (Verdict.EQUAL, Verdict.STALE) else "different",
    }
    return row(harness, verdict, **(fields | values))


def write(
    path: pathlib.Path,
    rows: Iterable[Row],
    versions: Versions = VERSIONS,
    *,
    selection: Any = None,
    sources: str = "sources",
    shard: str = "",
    cells: int | None = None,
    finish: bool = True,
) -> pathlib.Path:
    """Adds a sweep to a file of results; returns its path."""
    with contextlib.closing(Database(path)) as database:
        data = {"primitives": ["*"]} if selection is None else selection
        sweep, _ = database.begin(versions, data, sources, fresh=True, shard=shard)
        if cells is not None:
            database.count(sweep, cells)
        database.record(sweep, rows)
        if finish:
            database.finish(sweep)
    return path


def many(count: int, seed: int = 0, primitives: Sequence[str] = ()) -> list[Row]:
    """Results of many cells that look like those of a full sweep; some are not equal."""
    rng = random.Random(seed)
    names = primitives or [f"primitive_{i}" for i in range(250)]
    rows = []
    for i in range(count):
        harness, (target, mode) = divmod(i, len(MODES))[0], MODES[i % len(MODES)]
        primitive, dtype = names[harness % len(names)], DTYPES[harness // 7 % len(DTYPES)]
        values: dict[str, Any] = {
            "primitive": primitive,
            "dtype": dtype,
            "mode": mode,
            "target": target,
            "seconds": rng.expovariate(10),
        }
        if "float" in dtype or "complex" in dtype:
            values |= {"error": rng.random(), "ulps": 8 * rng.random()}
            values["message"] = f"result 0 at [{i}] is np.float32({rng.random()}), JAX gives 1.0"
        verdict, outcome = Verdict.EQUAL, "equal"
        if i % 97 == 0:
            verdict, outcome = Verdict.LIMITED, "lowering error"
            values["limitation"] = f"What runs it has no kernel of kind {i % 13}."
        elif i % 2999 == 0:
            verdict, outcome = Verdict.UNEXPECTED, "TF error"
            values["message"] = f'InvalidArgumentError: <b>node {i}</b> & "others" ' + "x" * 800
        name = f"{primitive}_shape=({harness % 5}, {harness % 11})_case={harness}_{dtype}"
        rows.append(cell(name, verdict, **(values | {"outcome": outcome})))
    return rows
