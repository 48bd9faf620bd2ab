"""Writes a page to explore the results of sweeps with: one file, which needs no network.

    python -m tools.explorer sweep.sqlite --output explorer.html

The page has the latest result of each cell and combination of versions, the rules of primitives and
their limitations. Messages of cells that are equal are left out; the database has them.
"""

import argparse
import ast
import base64
import collections
import contextlib
import gzip
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jinja2

from limitations import Limitation, all_limitations
from results import rows
from results.files import DatabaseError, explained, open_for_reading
from results.outcome import Outcome, Verdict
from results.rows import Versions
from tools.terminal import failed, run

ROOT = pathlib.Path(__file__).parents[1]
TEMPLATES = ROOT / "g3doc" / "templates" / "explorer"

# Longer messages are cut in the page; more of them if the page is to be small.
_MESSAGE, _SHORT_MESSAGES = 600, (200, 60, 0)

Value = TypeVar("Value")


class Numbered(dict[Value, int]):
    """Numbers values in the order in which they are first asked for."""

    def __missing__(self, value: Value) -> int:
        self[value] = len(self)
        return self[value]


def read(path: pathlib.Path, message: int = _MESSAGE) -> dict[str, Any]:
    """The results in a file, as the page has them: tables of what is repeated, and columns.

    Args:
      path: the file.
      message: how many characters of a message to keep.

    Raises:
      DatabaseError: if the file cannot be used, or has no results.
    """
    columns = (*rows.CELL, "primitive", "dtype", "outcome", "verdict", "seconds", "ulps")
    chosen = ", ".join((*columns, "limitation", "message"))
    latest: dict[tuple, tuple] = {}
    sweeps = []
    with contextlib.closing(open_for_reading(path)) as connection, explained(path):
        cursor = connection.execute(
            f"SELECT id, started, finished, {', '.join(rows.VERSIONS)} FROM sweeps "
            "ORDER BY started, id"
        )
        for sweep, started, finished, *values in cursor.fetchall():
            versions = Versions(*values)
            sweeps.append((versions, started, finished))
            found = connection.execute(f"SELECT {chosen} FROM results WHERE sweep = ?", (sweep,))
            latest.update({(versions, *cell[:5]): cell[5:] for cell in found})
    if not latest:
        raise DatabaseError(f"{path} has no results of sweeps")
    return {**_columns(latest, message), "sweeps": _sweeps(sweeps)}


def _sweeps(sweeps: Iterable[tuple[Versions, str, str | None]]) -> list[str]:
    """A line for each combination of versions, on its latest sweep."""
    latest = {versions: (started, finished) for versions, started, finished in sweeps}
    return [
        f"{versions}: " + (f"finished {finished}" if finished else f"begun {started}, not finished")
        for versions, (started, finished) in latest.items()
    ]


def _columns(cells: Mapping[tuple, tuple], length: int) -> dict[str, Any]:
    """Cells as columns of numbers, ordered by primitive and harness."""
    versions: Numbered[Versions] = Numbered()
    harnesses: Numbered[tuple[str, str, str]] = Numbered()
    places: Numbered[tuple] = Numbered()
    results: Numbered[tuple[str, str]] = Numbered()
    limitations: Numbered[str] = Numbered()
    messages: Numbered[str] = Numbered()
    limitations[""], messages[""]  # Most cells have none: number 0.
    columns: dict[str, list[Any]] = collections.defaultdict(list)
    order = sorted(cells, key=lambda cell: (cells[cell][0], cell[1], cell[0].jax, cell[2:]))
    for key in order:
        ran_with, harness, *place = key
        primitive, dtype, outcome, verdict, seconds, ulps, limitation, message = cells[key]
        columns["harness"].append(harnesses[primitive, harness, dtype])
        columns["place"].append(places[(versions[ran_with], *place)])
        columns["result"].append(results[outcome, verdict])
        columns["seconds"].append(round(1000 * seconds))
        columns["ulps"].append(_ulps(ulps))
        columns["limitation"].append(limitations[limitation])
        # JAX's reason is the same for all cells of a variant, and nothing that could be mended.
        is_told = outcome != Outcome.EQUAL and verdict != Verdict.NO_VARIANT
        columns["message"].append(messages[_short(message, length) if is_told else ""])
    primitives: Numbered[str] = Numbered()
    dtypes = sorted({dtype for _, _, dtype in harnesses}, key=_dtype_order)
    return {
        "versions": [str(v) for v in versions],
        "harnesses": [
            [primitives[primitive], name.removeprefix(f"{primitive}_"), dtypes.index(dtype)]
            for primitive, name, dtype in harnesses
        ],
        "primitives": list(primitives),
        "dtypes": dtypes,
        "places": list(places),
        "results": list(results),
        "limitations": list(limitations),
        "messages": list(messages),
        "cells": {**columns, "harness": _steps(columns["harness"])},
    }


def _steps(numbers: Sequence[int]) -> list[int]:
    """Numbers as differences from the ones before, which compress better."""
    return [b - a for a, b in zip((0, *numbers), numbers, strict=False)]


def _ulps(ulps: float | None) -> float | None:
    """Two digits of an error; -1 for an infinite one, for which JSON has no number."""
    if ulps is None:
        return None
    return -1 if ulps == float("inf") else float(f"{ulps:.2g}")


def _short(message: str, length: int) -> str:
    half = length // 2
    if len(message) <= length:
        return message
    return f"{message[:half]} ... {message[len(message) - half :]}"


def _dtype_order(dtype: str) -> tuple:
    """A key that sorts dtypes by kind and size; those that few primitives take come last."""
    kinds = ("bool", "int", "uint", "bfloat", "float", "complex")
    kind, digits = re.findall(r"^([^\d_]*)(\d*)", dtype)[0]
    is_common = kind in kinds and "_" not in dtype and int(digits or 8) >= 8
    known = kinds.index(kind) if kind in kinds else len(kinds)
    return not is_common, known, int(digits or 0), dtype


def rules(primitives: Iterable[str], root: pathlib.Path = ROOT) -> dict[str, Any]:
    """The source of the rules of primitives: the statements that name them.

    Args:
      primitives: names of primitives.
      root: the directory of the sources.

    Returns:
      The sources, each a file and line with the text, and by primitive the numbers of its sources.
    """
    wanted = set(primitives)
    sources: Numbered[tuple[str, str]] = Numbered()
    by_primitive: dict[str, list[int]] = collections.defaultdict(list)
    for path in sorted((root / "lowering" / "rules").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # The primitives in tables of names, by the variables that hold the tables.
        tables: dict[str, set[str]] = {}
        for statement in ast.parse(text).body:
            named = wanted & set(_names(statement))
            named |= set().union(*(tables.get(name, ()) for name in _variables(statement)))
            for target in getattr(statement, "targets", ()):
                tables.update({name: named for name in _variables(target)})
            if named:
                first = min((d.lineno for d in _decorators(statement)), default=statement.lineno)
                lines = text.split("\n")[first - 1 : statement.end_lineno]
                place = f"{path.relative_to(root)}, line {first}"
                number = sources[place, "\n".join(lines)]
                for primitive in named:
                    by_primitive[primitive].append(number)
    return {"sources": list(sources), "rules": dict(by_primitive)}


def _variables(statement: ast.AST) -> list[str]:
    """The names in a statement; none if it defines a function or class."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return []
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return getattr(statement, "decorator_list", [])


def _names(statement: ast.stmt) -> Iterable[str]:
    """The words in the strings of a statement, or of the decorators of a function."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return  # The docstring of the module.
    is_definition = isinstance(statement, ast.FunctionDef | ast.ClassDef)
    for part in _decorators(statement) if is_definition else [statement]:
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from node.value.split()


def stated(primitives: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """The limitations of primitives, in words: where each holds, and what happens there."""
    known = all_limitations()
    return {p: list(map(_in_words, known[p])) for p in primitives if p in known}


def _in_words(limitation: Limitation) -> dict[str, str]:
    filters = (limitation.dtypes, limitation.modes, limitation.targets, limitation.devices)
    where = [", ".join(sorted(names)) for names in filters if names is not None]
    if limitation.where is not None:
        where.append("some cases")
    said = limitation.error_in_words
    expected = f"error {said}" if said else f"{limitation.looser} equality"
    return {"reason": limitation.reason, "where": "; ".join(where), "expected": expected}


def render(data: Mapping[str, Any]) -> str:
    """The page of some data."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES, encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    encoded = json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    # The same results give the same page, whenever it is written.
    compressed = gzip.compress(encoded, 9, mtime=0)
    return environment.get_template("page.html.jinja").render(
        data=base64.b64encode(compressed).decode(),
        script=(TEMPLATES / "page.js").read_text(encoding="utf-8"),
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
    )


_DATA = re.compile(r'(?<=id="data">)[^<]*(?=<)')


def data_in(text: str) -> dict[str, Any]:
    """The data of a page.

    Args:
      text: a page, as `page` returns it.
    """
    return json.loads(gzip.decompress(base64.b64decode(_DATA.findall(text)[0])))


def refreshed(text: str) -> str:
    """A page with its own results and rules, those of its sweeps, and the limitations of today.

    Args:
      text: a page, as `page` returns it.
    """
    data = data_in(text)
    return render({**data, "stated": stated(data["primitives"])})


def is_current(text: str) -> bool:
    """Whether a page is as it would be written today, but for its results and rules.

    Args:
      text: a page, as `page` returns it.
    """
    today = refreshed(text)
    # Versions of zlib compress the same data to other bytes.
    return _DATA.sub("", text) == _DATA.sub("", today) and data_in(text) == data_in(today)


def page(path: pathlib.Path, limit: int | None = None) -> str:
    """The page of a file of results.

    Args:
      path: the file.
      limit: how many bytes the page may have; messages are cut until it has no more.

    Raises:
      DatabaseError: if the file cannot be used, or has no results.
      ValueError: if the page has more bytes than it may even without messages.
    """
    for message in (_MESSAGE, *_SHORT_MESSAGES):
        data = read(path, message)
        primitives = data["primitives"]
        text = render({**data, **rules(primitives), "stated": stated(primitives)})
        if limit is None or len(text.encode()) <= limit:
            return text
    raise ValueError(f"the page of {path} has more than {limit:,} bytes even without messages")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.explorer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", type=pathlib.Path, metavar="DATABASE")
    parser.add_argument("--output", type=pathlib.Path, required=True, metavar="PAGE")
    args = parser.parse_args(argv)
    try:
        text = page(args.database)
        args.output.write_text(text, encoding="utf-8")
    except DatabaseError as error:
        return failed(error)
    except OSError as error:
        return failed(f"{args.output} cannot be written: {error.strerror}")
    print(f"{args.output}: {len(text) / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    run(main)
