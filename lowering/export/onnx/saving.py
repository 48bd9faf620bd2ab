"""Writes models of ONNX to files, whose weights may be larger than memory has room for twice."""

import contextlib
import errno
import io
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from lowering.export import limits, onnx_files, paths


def serialized(model: Any) -> bytes:
    """A model as bytes.

    Raises:
      ValueError: if that is more than one message of protobuf has.
    """
    check_size(model)
    file = io.BytesIO()
    onnx_files.write(model, file)
    return file.getvalue()


def check_size(model: Any) -> None:
    """Raises a ValueError if a model has more weights than one message of protobuf."""
    if _bytes_of_weights(model) > limits.LARGEST:
        raise ValueError(
            "the weights have more than 2 GB, which one message of ONNX does not hold; with `path` "
            "they are written to a file beside the model"
        )


def save(model: Any, path: pathlib.Path, external_data: bool = False) -> None:
    """Writes a model, one weight after the other.

    Args:
      model: the model, as `converted` makes it.
      path: the file.
      external_data: whether weights are written to a file beside it, with ".data" behind its name;
        where they are too large for one file they are.
    """
    try:
        _write(model, path, external_data)
    except OSError as error:
        if error.errno is not None:
            raise
        # NumPy does not say why it has written less than it wanted.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error


@contextlib.contextmanager
def without_stale_weights(path: str | os.PathLike[str] | None, overwrite: bool) -> Iterator[None]:
    """A context in which a model is replaced; removes the old file of weights if it is left over.

    Args:
      path: the file of the model, if any.
      overwrite: whether what is there is replaced.
    """
    model = None if path is None or not overwrite else paths.checked(path)
    before = None if model is None else _weights_of(model)
    yield
    if model is not None and before is not None and _weights_of(model) is None:
        before.unlink(missing_ok=True)


@contextlib.contextmanager
def mapped(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A context with an equal model, whose large weights runtimes map into memory.

    Of weights in the message itself, onnxruntime makes two copies before it converts any of them.

    Args:
      path: the file of a model, in which the weights stay.
    """
    if path.stat().st_size < onnx_files.LARGE_BYTES:
        yield path
        return
    with path.open("rb") as file:
        message = onnx_files.with_external_weights(file, path.name)
    # External data has to be in the folder of the model.
    handle, name = tempfile.mkstemp(suffix=path.suffix, dir=path.parent)
    beside = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(message)
        yield beside
    finally:
        beside.unlink()


def size(path: pathlib.Path) -> int:
    """The bytes of a model, with those of the file of its weights."""
    beside = _file_of_weights(path)
    return path.stat().st_size + (0 if beside is None else beside.stat().st_size)


def _file_of_weights(path: pathlib.Path) -> pathlib.Path | None:
    """The file beside a model that has the name of a file of its weights; None if there is none.

    That name may be longer than a file system permits, which is an error for `pathlib`.
    """
    beside = path.with_name(_name_of_weights(path))
    return beside if os.path.isfile(beside) else None


def _weights_of(path: pathlib.Path) -> pathlib.Path | None:
    """The file of the weights of a model, as `save` calls it; None if it does not name that."""
    import onnx_ir as ir

    beside = _file_of_weights(path)
    if beside is None or not path.is_file():
        return None
    try:
        graph = ir.load(path).graph
    except Exception:  # It is no model; the errors of the parser have no class in common.
        return None
    tensors = (x.const_value for x in graph.initializers.values())
    external = (x for x in tensors if isinstance(x, ir.ExternalTensor))
    return beside if any(str(x.location) == beside.name for x in external) else None


def _name_of_weights(path: pathlib.Path) -> str:
    return f"{path.name}.data"


def _write(model: Any, path: pathlib.Path, external_data: bool) -> None:
    import onnx_ir as ir

    if external_data or _bytes_of_weights(model) > limits.LARGEST:
        ir.save(model, path, "protobuf", external_data=_name_of_weights(path))
    else:
        with path.open("wb") as file:
            onnx_files.write(model, file)


def _bytes_of_weights(model: Any) -> int:
    """The size of all weights."""
    values = [x.const_value for x in model.graph.initializers.values()]
    return sum(tensor.nbytes for tensor in values if tensor is not None)
