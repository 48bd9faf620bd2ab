"""The versions of JAX and TensorFlow that this package supports, checked when it is imported.

The check reads what pip has recorded, and imports neither unless that is not enough. It imports
nothing else that takes long: an interrupt while a command is imported has a traceback.

`setup.cfg` asks pip for the same versions; a test compares the two, and the versions that
the recorded results are of.
"""

import contextlib
import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

# The version of this package.
VERSION = "0.1.0"


class Supported(NamedTuple):
    """A package, and the versions of it that are supported.

    Attributes:
      title: the name that people call it.
      module: the module that is imported.
      distributions: the names under which it is published.
      oldest: the first version that has all that is needed.
      newest: the last series of releases that the tests ran with.
      command: the command that installs a supported version.
    """

    title: str
    module: str
    distributions: Sequence[str]
    oldest: str
    newest: str
    command: str

    def is_too_old(self, version: str) -> bool:
        """Whether something is lacking in a version."""
        return _release(version) < _release(self.oldest)

    def is_untested(self, version: str) -> bool:
        """Whether a version belongs to a later series than the last that was tested."""
        newest = _release(self.newest)
        return _release(version)[: len(newest)] > newest


JAX = Supported(
    title="JAX",
    module="jax",
    distributions=("jax",),
    oldest="0.10.2",
    newest="0.12",
    command='pip install "jax >= 0.10.2"',
)
TENSORFLOW = Supported(
    title="TensorFlow",
    module="tensorflow",
    distributions=("tensorflow-cpu", "tensorflow"),
    oldest="2.21",
    newest="2.21",
    command=(
        'pip install "tensorflow-cpu >= 2.21", which is the extra `cpu` of lowering, or '
        'pip install "tensorflow >= 2.21", which is the extra `tensorflow`'
    ),
)


def check(packages: Sequence[Supported] = (JAX, TENSORFLOW)) -> None:
    """Checks which versions are installed; warns once of those that are newer than any tested.

    Raises:
      ImportError: if a package is too old. `check_installed` raises one for a missing package.
    """
    untested = []
    for package in packages:
        version, error = _installed(package)
        if version is None:
            continue
        if package.is_too_old(version):
            raise _unsupported(package, f"{package.title} {version}") from None
        if error is not None:
            raise error
        if package.is_untested(version):
            untested.append(f"{package.title} {version} (tested up to {package.newest})")
    if untested:
        warnings.warn(
            f"lowering has not been tested with {' and '.join(untested)}; it may fail",
            RuntimeWarning,
            stacklevel=3,
        )


@functools.cache
def check_installed() -> None:
    """Checks that JAX and TensorFlow are there, when something of this package is used.

    Raises:
      ImportError: if one of them is not installed.
    """
    for package in (JAX, TENSORFLOW):
        if _installed(package)[0] is None:
            raise _unsupported(package, "none")


def _unsupported(package: Supported, found: str) -> ImportError:
    return ImportError(
        f"lowering needs {package.title} {package.oldest} or later, and {found} is installed. "
        f"Run {package.command}",
        name=package.module,
    )


def _installed(package: Supported) -> tuple[str | None, Exception | None]:
    """The version that is installed, None if there is none, and why it cannot be imported.

    An old version may fail with new versions of what it imports. A supported version that is
    recorded is not imported.
    """
    if package.module not in sys.modules:
        for version in map(_recorded, package.distributions):
            if version and not package.is_too_old(version) and not package.is_untested(version):
                return version, None
    try:
        return importlib.import_module(package.module).__version__, None
    except Exception as error:  # Whatever the module raises.
        if isinstance(error, ModuleNotFoundError) and error.name == package.module:
            return None, None
        for version in map(_recorded, package.distributions):
            if version:
                return version, error
        raise


def _recorded(distribution: str) -> str | None:
    """The version that pip has recorded, as `importlib.metadata` finds it; None without a record.

    The record is a directory or file such as `jax-0.10.2.dist-info` beside the package.
    """
    record = re.compile(rf"{distribution.replace('-', '_')}-([^-]+).*\.(dist|egg)-info")
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for found in filter(None, map(record.fullmatch, os.listdir(folder or "."))):
                return found[1]
    return None


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without what follows them, such as "rc1" or ".dev20260101"."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
