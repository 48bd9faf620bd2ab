"""Which tests and primitives a change can reach.

`.ci/reach.json` says which sources each test and each primitive has executed or opened, as
`tools.ci.recording` has seen it. `.ci/passed.json` has a hash of each source as it was when
everything that it can reach last passed. What has another hash has changed since.

A test reaches a source if it executed one of its functions or opened it, or if it executed a module
that imports the source directly: constants and classes leave no other trace. What the map does not
know runs always.

A source has two hashes: of its code, and of its text. If comments and docstrings of functions and
classes alone have changed, that reaches the tests that read sources.
"""

import ast
import collections
import dataclasses
import functools
import hashlib
import json
import pathlib
import subprocess
from collections.abc import Collection, Iterable, Mapping

import grimp

from tools.ci.observed import PROCESS, ROOT

REACH = ROOT / ".ci" / "reach.json"
PASSED = ROOT / ".ci" / "passed.json"

PACKAGES = ("lowering", "harnesses", "limitations", "results", "tools")
# What all tests depend on: the packages that they run with, and how they are run.
_EVERYTHING = frozenset(["setup.cfg", "pyproject.toml", "tests/conftest.py"])
# Where the files are that are a primitive's own.
OWN = ("lowering/rules/", "harnesses/primitives/", "limitations/primitives/")
# Sources that so many tests execute, or fewer, have tests of their own.
_FEW = 10
# Follows the name of a source where its text has changed, whether its code has or not.
_TEXT = "#text"
# The tests that read sources and docstrings.
_READERS = (
    "tests/targets/",
    "tests/test_architecture.py",
    "tests/test_documented_behaviour.py",
    "tests/test_package.py",
    "tests/test_site.py",
    "tests/tools/",
)
# What no test depends on: the records of what has run, and what has merely been written about it.
_NOTHING = (".ci/reach.json", ".ci/passed.json", ".gitignore")


@dataclasses.dataclass(frozen=True)
class Reach:
    """What tests and primitives reach.

    Attributes:
      tests: by name of a test without parameters, the sources that it has executed or opened.
      primitives: the same for the harnesses of each primitive.
      seconds: how long tests take, of those that take long.
    """

    tests: Mapping[str, frozenset[str]]
    primitives: Mapping[str, frozenset[str]]
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def tests_of(self, changed: frozenset[str]) -> frozenset[str]:
        """The tests, among those that are known, that reach one of the changed sources."""
        if changed & _EVERYTHING:
            return frozenset(self.tests)
        users = _users(changed)
        has_sources = any(_is_source(name) and not name.endswith(_TEXT) for name in changed)
        has_texts = any(name.endswith(_TEXT) for name in changed)
        return frozenset(
            name
            for name, seen in self.tests.items()
            # Every test reaches the file that it stands in.
            if seen & users
            or name.split("::")[0] in changed
            or (PROCESS in seen and has_sources)
            or (has_texts and name.startswith(_READERS))
        )

    def few_tests_of(self, changed: frozenset[str]) -> frozenset[str]:
        """The tests of those changed sources that few tests execute.

        If only some of their cases ran, no other test would find what these leave out.
        """
        count = collections.Counter(name for seen in self.tests.values() for name in seen)
        few = frozenset(name for name in changed if _is_source(name) and count[name] <= _FEW)
        return frozenset(name for name, seen in self.tests.items() if seen & few)

    def primitives_of(self, changed: frozenset[str]) -> frozenset[str]:
        """The primitives, among those that are known, that reach one of the changed sources."""
        if changed & _EVERYTHING:
            return frozenset(self.primitives)
        users = _users(changed)
        return frozenset(name for name, seen in self.primitives.items() if seen & users)


def read(path: pathlib.Path = REACH) -> Reach:
    """The recorded reach; empty if there is no file."""
    if not path.exists():
        return Reach({}, {})
    data = json.loads(path.read_text())
    sources = data["sources"]

    def seen(by_name: Mapping[str, str]) -> dict[str, frozenset[str]]:
        return {name: frozenset(_unpacked(bits, sources)) for name, bits in by_name.items()}

    return Reach(seen(data["tests"]), seen(data["primitives"]), data["seconds"])


def write(reach: Reach, path: pathlib.Path = REACH) -> None:
    """Writes a reach: a list of sources, and for each test the numbers of its sources as bits."""
    both = (reach.tests, reach.primitives)
    sources = sorted(frozenset().union(*(seen for of in both for seen in of.values())))
    number = {source: i for i, source in enumerate(sources)}

    def packed(by_name: Mapping[str, frozenset[str]]) -> dict[str, str]:
        return {
            name: f"{sum(1 << number[source] for source in by_name[name]):x}"
            for name in sorted(by_name)
        }

    data = {
        "sources": sources,
        "primitives": packed(reach.primitives),
        "tests": packed(reach.tests),
        "seconds": {name: reach.seconds[name] for name in sorted(reach.seconds)},
    }
    path.write_text(json.dumps(data, indent=0) + "\n")


def _unpacked(bits: str, sources: list[str]) -> Iterable[str]:
    number = int(bits, 16)
    return (source for i, source in enumerate(sources) if number >> i & 1)


def hashes() -> dict[str, str]:
    """Hashes of the code and the text of each source of the checkout, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {}
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        if name not in _NOTHING and (ROOT / name).is_file():
            content = (ROOT / name).read_bytes()
            if _is_source(name) and name.endswith(".py"):
                found[name] = _hash(_code(content.decode()).encode())
                name += _TEXT
            found[name] = _hash(content)
    return found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:10]


@functools.cache
def _code(text: str) -> str:
    """The code of a module, without comments and the docstrings of its functions and classes."""
    tree = ast.parse(text)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [ast.Pass()]
    return ast.unparse(tree)


def changed(path: pathlib.Path = PASSED) -> frozenset[str]:
    """The sources that are not as they were when everything passed; all, if that is unknown."""
    before = json.loads(path.read_text()) if path.exists() else {}
    now = hashes()
    return frozenset(n for n in before.keys() | now.keys() if before.get(n) != now.get(n))


def seed() -> str:
    """A text that is the same for the same sources, whatever has been recorded of them."""
    return hashlib.sha256(json.dumps(hashes()).encode()).hexdigest()[:12]


def _is_source(name: str) -> bool:
    return name.split("/")[0] in PACKAGES


def _users(changed: Collection[str]) -> frozenset[str]:
    """Sources, and what shows that these are used: the modules that import them directly."""
    return frozenset().union(*map(_users_of, changed))


def _users_of(name: str) -> frozenset[str]:
    if not _is_source(name) or name.endswith(_TEXT):
        return frozenset([name])
    if not name.endswith(".py"):
        # Read once by a process, whichever test comes first: a table of a target, a program of
        # Node. What reads it stands beside it, or in the package around.
        folders = pathlib.PurePath(name).parents
        packages = [f for f in folders if (ROOT / f / "__init__.py").exists()][:2]
        modules = [path for package in packages for path in (ROOT / package).glob("*.py")]
        # Those that name it, unless a name is put together.
        naming = [path for path in modules if pathlib.PurePath(name).name in path.read_text()]
        return frozenset([name, *(str(path.relative_to(ROOT)) for path in naming or modules)])
    return frozenset([name, *_importers(name)])


def _importers(name: str) -> Iterable[str]:
    graph = _graph()
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if module not in graph.modules:
        return ()
    return (_path(importer) for importer in graph.find_modules_that_directly_import(module))


def _path(module: str) -> str:
    path = ROOT / module.replace(".", "/")
    found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return str(found.relative_to(ROOT))


@functools.cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES)
