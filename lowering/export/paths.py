"""Files and directories that exports write."""

import contextlib
import errno
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping

from lowering.export import bundles
from lowering.export.descriptions import FORMATS
from lowering.export.readers import TFLITE

# Why a file cannot become larger. These errors do not have its name.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# The suffixes of models, of the weights beside them, and of the outputs of a run.
_SUFFIXES = (".tflite", ".onnx", ".litertlm", ".data", ".npz", ".npy")

_ADVICE = "exporters replace a model with overwrite=True"


def checked(path: str | os.PathLike[str], to: str | None = None) -> pathlib.Path:
    """The path that a caller gives for what is written; `~` is the home directory.

    Args:
      path: the path.
      to: the format, one of `FORMATS`; None for any.

    Raises:
      TypeError: if it is no path.
      ValueError: if it is empty, or has the suffix of another format.
    """
    if not isinstance(path, str | os.PathLike):
        hint = "; parameters are given by params=" if isinstance(path, tuple | list) else ""
        raise TypeError(
            f"path is a str or a pathlib.Path, where the model is written, not "
            f"{type(path).__name__}{hint}"
        )
    if not os.fspath(path):
        raise ValueError("path is empty")
    # `pathlib` raises an error for the home of an unknown user; that may be the name of a file.
    found = pathlib.Path(os.path.expanduser(path))
    suffix = found.suffix.removeprefix(".")
    if to is not None and suffix in FORMATS and suffix != to:
        raise ValueError(f"{found} has the suffix of {FORMATS[suffix]}, not of {FORMATS[to]}")
    return found


@contextlib.contextmanager
def new_path(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[pathlib.Path]:
    """A context with a temporary path, whose file or directory is moved to `path` at its end.

    Files that are written beside it, such as weights of ONNX, are moved to the directory of `path`.
    If the context ends with an error, nothing is left behind: neither what was written, nor
    directories above it that did not exist.

    Args:
      path: where the file or directory will be.
      overwrite: whether a file or a model at `path` is replaced, once the new one is complete.

    Raises:
      TypeError: if `path` is no path.
      ValueError: if it is empty.
      OSError: for one that is raised in the context, with `path` in the place of temporary paths.
      NotADirectoryError: if a directory above `path` is a file.
      PermissionError: if it may not be written to.
      FileExistsError: if there is something at `path`; an empty directory is nothing. What is no
        model, such as the source of a program, is never replaced.
    """
    path = checked(path)
    _check_free(path, overwrite)
    check_directories(path)
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # A name may be as long as a file system permits, so only a part is in front of more.
        prefix = f".{path.name[:32]}-"
        try:
            temporary = tempfile.TemporaryDirectory(dir=path.parent, prefix=prefix)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        with temporary as above:
            written = pathlib.Path(above) / path.name
            try:
                yield written
            except OSError as error:
                if not _is_of_writing(error, above):
                    raise
                raise OSError(error.errno, error.strerror, str(path)) from error
            beside = [x for x in written.parent.iterdir() if x != written]
            # Something may have come there in the meantime.
            for new in (written, *beside):
                _check_free(path.parent / new.name, overwrite)
            _replace({path.parent / new.name: new for new in (*beside, written)})
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):  # Someone else has put something there.
                parent.rmdir()
        raise


def check_directories(path: pathlib.Path) -> None:
    """Raises an OSError if a directory above a path is something else, or may not be written to."""
    for folder in path.parents:
        if os.path.lexists(folder) and not folder.is_dir():
            raise NotADirectoryError(f"{path} cannot be written, as {folder} is no directory")
    above = next((folder for folder in path.parents if folder.exists()), None)
    if above is not None and not os.access(above, os.W_OK):
        raise PermissionError(f"{path} cannot be written, as {above} is read-only")


def error_of_file(error: Exception, path: str | os.PathLike[str]) -> OSError:
    """The error that Python raises for a file that TensorFlow cannot write.

    Args:
      error: what TensorFlow raises; its message ends with a reason of the system.
      path: the file or directory.
    """
    # Messages look like "{{function_node ...}} file; No space left on device [Op:SaveV2]".
    reason = str(error).partition(" [Op:")[0].rpartition("; ")[2]
    number = next((n for n in errno.errorcode if os.strerror(n) == reason), errno.EIO)
    return OSError(number, reason, str(path))


def _is_of_writing(error: OSError, above: str) -> bool:
    """Whether an error is about a file in a temporary directory."""
    if error.filename is None:
        return error.errno in _FULL
    return str(error.filename).startswith(above)


def _replace(new: Mapping[pathlib.Path, pathlib.Path]) -> None:
    """Moves files or directories to paths; what was there is moved out, to be removed.

    After an error or an interrupt everything is where it was.
    """
    moved: list[tuple[pathlib.Path, pathlib.Path]] = []

    def move(source: pathlib.Path, target: pathlib.Path) -> None:
        moved.append((source, target))  # Before it is moved, as an interrupt may come in between.
        source.rename(target)

    try:
        for i, (path, written) in enumerate(new.items()):
            if os.path.lexists(path):
                move(path, written.with_name(f"old-{i}-{written.name[:32]}"))
            move(written, path)
    except BaseException:
        for source, target in reversed(moved):
            if os.path.lexists(target) and not os.path.lexists(source):
                target.rename(source)
        raise


def _check_free(path: pathlib.Path, overwrite: bool) -> None:
    if path.is_dir() and not path.is_symlink():
        if any(path.iterdir()) and not (overwrite and is_model(path)):
            of_what = "no model" if overwrite else f"no empty directory; {_ADVICE}"
            raise FileExistsError(f"{path} exists, and is {of_what}")
    elif os.path.lexists(path):
        if not is_model(path):
            raise FileExistsError(f"{path} exists, and is no model")
        if not overwrite:
            raise FileExistsError(f"{path} exists; {_ADVICE}")


def is_model(path: pathlib.Path) -> bool:
    """Whether there is what an export or a run may have written, which can be replaced.

    That is a directory with a SavedModel or a TF.js model, or a file that begins as a model does,
    has the suffix of one or of arrays, or is empty.
    """
    if path.is_dir():
        return any((path / name).is_file() for name in ("saved_model.pb", "model.json"))
    if not path.is_file():
        return path.is_symlink()  # One to nothing. Others are devices, say.
    if path.suffix in _SUFFIXES:
        return True
    with path.open("rb") as file:
        start = file.read(8)
    # A ModelProto of ONNX begins with its version.
    return not start or start == bundles.MAGIC or start[4:] == TFLITE or start[:1] == b"\x08"
