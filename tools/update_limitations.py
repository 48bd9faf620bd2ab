"""Proposes limitations for unexpected failures and passes, as a diff to review.

    python -m tools.update_limitations sweep.sqlite
    python -m tools.sweep --primitive sort --update-limitations

The diff goes to standard output and changes nothing; `git apply` applies it. New limitations are
exact, but their reasons are still to be written: whoever reviews the diff finds out whether the
cause is outside of this project, or whether it is to be mended. The results are those of the sweeps
by the installed versions and the sources as they are.
"""

import argparse
import ast
import contextlib
import difflib
import itertools
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import jax

from harnesses import sweep
from harnesses.database import Database
from harnesses.harness import Harness, all_harnesses
from harnesses.proposals import Narrower, New, Place, Proposal, predicate, propose
from harnesses.variants import PLAIN
from results.files import DatabaseError
from results.rows import CELL, Row
from tools.families import family
from tools.terminal import failed, run

ROOT = pathlib.Path(__file__).parents[1]
FILES = pathlib.Path("limitations", "primitives")

_NEW_FILE = '"""Limitations of {primitive}."""\n\nLIMITATIONS = {{}}\n'
_IMPORTS = {
    "Limitation": "from limitations.limitation import Limitation",
    "Looser": "from limitations.limitation import Looser",
    "dataclasses": "import dataclasses",
}


def diff(proposals: Mapping[str, Proposal], root: pathlib.Path = ROOT) -> str:
    """The changes of the files of limitations as a unified diff.

    Args:
      proposals: the changes by primitive.
      root: the directory of the sources.
    """
    before: dict[pathlib.Path, str] = {}
    after: dict[pathlib.Path, str] = {}
    for primitive, proposal in proposals.items():
        if not proposal.new and not proposal.narrower:
            continue
        path = file_of(primitive, root)
        if path not in before:
            exists = (root / path).exists()
            before[path] = (root / path).read_text(encoding="utf-8") if exists else ""
            after[path] = before[path] or _NEW_FILE.format(primitive=primitive)
        after[path] = _changed(after[path], primitive, proposal)
    lines: list[str] = []
    for path, text in after.items():
        new = _tidied(text)
        lines += difflib.unified_diff(
            _lines(before[path]),
            _lines(new),
            f"a/{path}" if before[path] else "/dev/null",
            f"b/{path}" if new else "/dev/null",
        )
    return "".join(lines)


def file_of(primitive: str, root: pathlib.Path = ROOT) -> pathlib.Path:
    """The file that has the limitations of a primitive, or is to have them: that of its family."""
    for path in sorted((root / FILES).glob("*.py")):
        if (
            path.stem != "__init__"
            and primitive in _Limitations(path.read_text(encoding="utf-8")).primitives()
        ):
            return path.relative_to(root)
    return FILES / f"{family(primitive)}.py"


class _Limitations:
    """The mapping of limitations in the text of a module."""

    def __init__(self, text: str):
        self.text = text
        self._lines = [0, *itertools.accumulate(map(len, _lines(text)))]
        found = [
            value
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) == "LIMITATIONS"
            if isinstance(value := node.value, ast.Dict)
        ]
        if len(found) != 1:
            raise ValueError("a module of limitations has one mapping LIMITATIONS")
        (self.mapping,) = found

    def primitives(self) -> set[str]:
        """The primitives that the mapping has."""
        named = {str(x.value) for x in self.mapping.keys if isinstance(x, ast.Constant)}
        return named.union(*(_shared(value) for value in self.mapping.values))

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Where a node begins and ends in the text."""
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def source(self, node: ast.expr) -> str:
        begin, end = self.span(node)
        return self.text[begin:end]

    def elements(self, primitive: str) -> list[str]:
        """The sources of the limitations of a primitive."""
        for key, value in zip(self.mapping.keys, self.mapping.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == primitive:
                return self._elements(value)
            if primitive in (names := _shared(value)):
                return self._elements(names[primitive].limitations)
        return []

    def without(self, primitive: str) -> str:
        """The text without the limitations of a primitive."""
        for key, value in zip(self.mapping.keys, self.mapping.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == primitive:
                return self._cut(self.span(key)[0], self.span(value)[1])
            if primitive in (names := _shared(value)):
                left = [repr(name) for name in names if name != primitive]
                begin, end = self.span(value)
                if not left:
                    return self._cut(self.text.rindex("**", 0, begin), end)
                begin, end = self.span(names[primitive].names)
                return f"{self.text[:begin]}({', '.join(left)},){self.text[end:]}"
        return self.text

    def _cut(self, begin: int, end: int) -> str:
        """The text without an entry, and the comma after it."""
        rest = self.text[end:].lstrip()
        return self.text[:begin] + rest.removeprefix(",")

    def with_entry(self, entry: str) -> str:
        """The text with a further entry of the mapping, as the last one."""
        _, end = self.span(self.mapping)
        inside = self.text[: end - 1].rstrip()
        comma = "" if inside.endswith(("{", ",")) else ","
        return f"{inside}{comma}\n{entry},\n{self.text[end - 1 :]}"

    def _elements(self, value: ast.expr) -> list[str]:
        is_list = isinstance(value, ast.List | ast.Tuple)
        elements = value.elts if isinstance(value, ast.List | ast.Tuple) else []
        if is_list and not any(isinstance(x, ast.Starred) for x in elements):
            return [self.source(x) for x in elements]
        raise ValueError(f"{self.source(value)} is no list of limitations that could be changed")

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None and column is not None  # Nodes of a parsed text have both.
        begin = self._lines[line - 1]
        encoded = self.text[begin : self._lines[line]].encode()
        return begin + len(encoded[:column].decode())


def _lines(text: str) -> list[str]:
    """The lines of a text as Python and git have them, which form feeds and the like do not end."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


class _Shared(NamedTuple):
    """The arguments of a call of `dict.fromkeys`."""

    names: ast.expr
    limitations: ast.expr


def _shared(value: ast.expr) -> dict[str, _Shared]:
    """The primitives that `dict.fromkeys` gives the same limitations; none in another value."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "dict.fromkeys":
        return {}
    names, limitations = value.args
    elements = names.elts if isinstance(names, ast.Tuple | ast.List) else []
    shared = _Shared(names, limitations)
    return {str(name.value): shared for name in elements if isinstance(name, ast.Constant)}


def _changed(text: str, primitive: str, proposal: Proposal) -> str:
    """The text of a module with the proposed limitations of a primitive."""
    module = _Limitations(text)
    elements = module.elements(primitive)
    changes = {change.number: change for change in proposal.narrower}
    # The first limitation that covers a cell counts, so those that are new come first.
    now = [_new(new) for new in proposal.new]
    for number, element in enumerate(elements):
        now += _narrowed(element, changes[number]) if number in changes else [element]
    text = module.without(primitive)
    if now:
        text = _Limitations(text).with_entry(f'"{primitive}": [{", ".join(now)}]')
    return text


def _new(new: New) -> str:
    """A limitation in Python, whose reason is still to be written."""
    message = " ".join(new.message.partition("\n")[0].split())
    what = textwrap.shorten(message, 200, placeholder=" ...")
    reason = _string(f"The reason is still to be written. {what}")
    how = f"looser=Looser.{new.looser.name}" if new.looser else f"error={_string(new.error or '')}"
    return f"Limitation({reason}, {how}, {_filters(new.place)})"


def _narrowed(element: str, change: Narrower) -> list[str]:
    """A limitation that covers less; none if it is to be removed."""
    call = ast.parse(element, mode="eval").body
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "Limitation":
        kept = [ast.get_source_segment(element, x) or "" for x in call.args]
        kept += [
            f"{x.arg}={ast.get_source_segment(element, x.value)}"
            for x in call.keywords
            if x.arg in ("reason", "error", "looser")
        ]
        head = f"Limitation({', '.join(kept)}, "
    else:
        head = f"dataclasses.replace({element}, "
    return [f"{head}{_filters(place)})" for place in change.places]


def _filters(place: Place) -> str:
    """Which cells a limitation covers, as arguments in Python."""
    chosen = {"dtypes": place.dtypes, "modes": place.modes, "targets": place.targets}
    parts = [f"{name}={_names(values)}" for name, values in chosen.items()]
    if place.devices is not None:
        parts.append(f"devices={_names(place.devices)}")
    if place.variants != {PLAIN}:
        parts.append(f"variants={_names(place.variants)}")
    where = predicate(place)
    return ", ".join([*parts, *([f"where={where}"] if where else [])])


def _names(names: Iterable[str]) -> str:
    return f"{{{', '.join(map(repr, sorted(names)))}}}"


def _string(text: str) -> str:
    """A string in Python, in parts that fit on a line."""
    parts = textwrap.wrap(text, 70, drop_whitespace=False, break_on_hyphens=False)
    return " ".join(map(repr, parts)) or '""'


def _tidied(text: str) -> str:
    """The text of a module with its imports, formatted; nothing if it has no limitation."""
    if not _Limitations(text).mapping.values:
        return ""
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    known = {
        alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    missing = "".join(f"{line}\n" for name, line in _IMPORTS.items() if name in names - known)
    docstring = ast.parse(text).body[0]
    lines = _lines(text)
    end = docstring.end_lineno or 0
    text = "".join([*lines[:end], "\n", missing, *lines[end:]])
    for command in (["check", "--select=F401,I", "--fix", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--no-cache",
                f"--stdin-filename={FILES}/x.py",
            ],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def latest(path: pathlib.Path) -> list[Row]:
    """The latest result of each cell by the installed versions and the sources as they are.

    Raises:
      DatabaseError: if the file cannot be used, or has no such results.
    """
    versions, sources = sweep.versions(), sweep.fingerprint()
    found: dict[tuple[str, ...], Row] = {}
    with contextlib.closing(Database(path, writable=False)) as database:
        for made in database.sweeps():
            if (made.versions, made.fingerprint) == (versions, sources):
                for row in database.rows(made.id):
                    found[tuple(getattr(row, column) for column in CELL)] = row
    if not found:
        raise DatabaseError(
            f"{path} has no results of {versions} and the sources as they are; sweep again"
        )
    return list(found.values())


def print_diff(rows: Sequence[Row], catalogue: Mapping[str, Harness]) -> None:
    """Prints the diff that the results of sweeps call for, and what no limitation explains."""
    with jax.enable_x64(True):
        proposals = propose(rows, catalogue)
    print(diff(proposals), end="")
    for proposal in proposals.values():
        for row in proposal.unexplained:
            print(
                f"{row.harness} ({row.variant}), {row.mode} on {row.target}: {row.message}: no "
                "looser comparison takes this for equal, so that it is to be mended",
                file=sys.stderr,
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.update_limitations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", type=pathlib.Path, metavar="DATABASE")
    args = parser.parse_args(argv)
    try:
        print_diff(latest(args.database), all_harnesses())
    except (DatabaseError, ValueError) as error:
        return failed(error)
    return 0


if __name__ == "__main__":
    run(main)
