"""Commands that pages name, README.md among them, exist and take the arguments that they name.

The pages are read, so that a command which is added there is tested. A command of `make` is what
make would run. A module is run up to the point where it has read its arguments; what it does then
is tested where the module is.
"""

import argparse
import configparser
import contextlib
import importlib
import importlib.util
import os
import pathlib
import re
import runpy
import shlex
import shutil
import sqlite3
import subprocess
import sys

import pytest
from absl import flags

from results import schema
from tests.helpers import ROOT

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "g3doc/command_line.md",
    "g3doc/index.md",
    "g3doc/versions.md",
)
# What a command in the text begins with, beside those in blocks of their own.
INLINE = re.compile(r"`((?:make|python -m|\.(?:venv|matrix)[^\s`]*/bin/\S+) [^`]+)`")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")


def commands_of(text):
    """The commands in a page as words: those in blocks without a language, and inline ones."""
    blocks, prose, language = [], [], None
    for line in text.splitlines():
        fence = re.fullmatch(r" *```(\w*)", line)
        if fence:
            language = fence[1] if language is None else None
        elif language is None:
            prose.append(line)
        elif not language:
            blocks.append(line)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = map(words_of, [*lines, *INLINE.findall(" ".join(" ".join(prose).split()))])
    return [words for words in found if words]


def words_of(command):
    """The words of a command, without comments, variables, redirections and ellipses."""
    words = [word for word in shlex.split(command, comments=True) if word != "..."]
    while words and ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    return words[: words.index(">")] if ">" in words else words


COMMANDS = sorted({shlex.join(w) for page in PAGES for w in commands_of((ROOT / page).read_text())})


class ArgumentsReadError(BaseException):
    """A module has read its arguments."""


def made_by(words):
    """The commands that make would run, of a target that exists."""
    # A make that runs these tests hands its variables on.
    names = {"MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "ARGS"}
    ended = subprocess.run(
        ["make", "--dry-run", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in names},
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.replace("\\\n", " ").splitlines()
    found = [
        line for line in lines if "/bin/" in line and "pip" not in line and "test -x" not in line
    ]
    return found


def check_module(module, args, monkeypatch):
    """Runs a module until it has read its arguments."""
    if module == "pytest":
        paths = [arg for arg in args if arg.startswith("tests/")]
        assert all((ROOT / path.partition("::")[0]).exists() for path in paths)
        return
    found = importlib.util.find_spec(module)
    assert found is not None, f"there is no module {module}"
    source = pathlib.Path(found.origin)
    if source.name == "__init__.py":
        source = source.with_name("__main__.py")
    if "from absl import" in source.read_text():
        importlib.import_module(module)
        assert {arg.removeprefix("--") for arg in args if arg.startswith("--")} <= set(flags.FLAGS)
        return
    if not any(word in source.read_text() for word in ("argparse", "argv")):
        assert not args
        return
    parser = argparse.ArgumentParser
    known, all_known = parser.parse_known_args, parser.parse_args

    def read_some(self, args=None, namespace=None):
        known(self, args, namespace)
        raise ArgumentsReadError

    def read_all(self, args=None, namespace=None):
        monkeypatch.setattr(parser, "parse_known_args", known)
        all_known(self, args, namespace)
        raise ArgumentsReadError

    monkeypatch.setattr(parser, "parse_known_args", read_some)
    monkeypatch.setattr(parser, "parse_args", read_all)
    monkeypatch.setattr(sys, "argv", [module, *args])
    monkeypatch.chdir(ROOT)
    # With --help a module ends by itself.
    with pytest.raises(ArgumentsReadError if "--help" not in args else SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert not getattr(ended.value, "code", 0)


def check_extras(args):
    """Packages to install: those of extras that exist, or others by name."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    for extra in re.findall(r"\.\[(.*?)\]", " ".join(args)):
        assert set(extra.split(",")) <= set(config["options.extras_require"])


def check_query(query):
    """A query of results, on tables without rows."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        schema.bring_up_to_date(connection)
        connection.execute(query)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_a_page_names(command, monkeypatch):
    pending = [shlex.split(command)]
    if pending[0][0] == "make":
        pending = [words_of(line) for line in made_by(pending[0][1:])]
        assert pending
    for program, *args in pending:
        name = pathlib.Path(program).name
        if name.startswith("python") and args[:1] == ["-m"]:
            check_module(args[1], args[2:], monkeypatch)
        elif name == "lowering":
            check_module(name, args, monkeypatch)
        elif name == "pip":
            check_extras(args)
        elif name == "sqlite3":
            check_query(args[1])
        elif program == ".ci/run":
            subprocess.run(["bash", "-n", ROOT / program], check=True)
        else:
            beside = pathlib.Path(sys.executable).with_name(name)
            assert beside.exists() or shutil.which(name), f"{name} is not known"


def test_commands_are_found():
    assert len(COMMANDS) > 30 and "make lint" in COMMANDS
    assert any(c.startswith("lowering export my_models:predict") for c in COMMANDS)


@pytest.mark.parametrize("command", ["make sweep ARGS=--primitives=sin", "python -m tools.nothing"])
def test_a_command_that_does_not_exist_is_found(command, monkeypatch):
    with pytest.raises((AssertionError, SystemExit)):
        test_a_command_that_a_page_names(command, monkeypatch)
