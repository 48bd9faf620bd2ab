"""Directories that exports write."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """A context with a path to write to, which becomes `path` when it ends without an error.

    So a failed export leaves nothing behind.

    Raises:
      FileExistsError: if there is something at `path`.
    """
    path = pathlib.Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} exists, and is no empty directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = pathlib.Path(folder) / "model"
        yield written
        if path.exists():
            path.rmdir()
        written.rename(path)
