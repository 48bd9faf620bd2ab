"""Files and directories that exports write."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def new_path(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """A context with a path to write a file or directory to, which becomes `path` at its end.

    What is written beside it, under its name with something behind it, comes to be beside `path`.
    If the context ends with an error, nothing is left behind: neither what was written, nor
    directories above it that did not exist.

    Raises:
      FileExistsError: if there is something at `path`; an empty directory is nothing.
    """
    path = pathlib.Path(path)
    _check_free(path)
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # A name may be as long as a file system permits, so only a part is in front of more.
        prefix = f".{path.name[:32]}-"
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=prefix) as folder:
            written = pathlib.Path(folder) / path.name
            yield written
            beside = [x for x in written.parent.iterdir() if x != written]
            # Something may have come there in the meantime.
            for new in (written, *beside):
                _check_free(path.parent / new.name)
            if path.exists():
                path.rmdir()
            for new in (*beside, written):
                new.rename(path.parent / new.name)
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):  # Someone else has put something there.
                parent.rmdir()
        raise


def _check_free(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        if any(path.iterdir()):
            raise FileExistsError(f"{path} exists, and is no empty directory")
    elif os.path.lexists(path):
        raise FileExistsError(f"{path} exists")
