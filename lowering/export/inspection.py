"""Inspects exported files of any format."""

import os
import pathlib

from lowering.export import bundles, onnx_files, readers, saved_model_files
from lowering.export.descriptions import FORMATS, Description


def checked_path(path: str | os.PathLike[str]) -> pathlib.Path:
    """The path of a model.

    Raises:
      TypeError: if it is none, as the bytes of a model.
    """
    if isinstance(path, str | os.PathLike):
        return pathlib.Path(os.path.expanduser(path))
    instead = "; write them to a file" if isinstance(path, bytes | bytearray | memoryview) else ""
    what = "bytes" if instead else type(path).__name__
    raise TypeError(f"expected the path of a model, not {what}{instead}")


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file or directory, one of `FORMATS`.

    Raises:
      FileNotFoundError: if there is nothing at `path`.
      ValueError: if it is in none of the formats.
    """
    path = checked_path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        for name, found in (("saved_model.pb", "saved_model"), ("model.json", "tfjs")):
            if (path / name).is_file():
                return found
        raise ValueError(f"{path} is a directory without a SavedModel or a TF.js model")
    if path.name == "saved_model.pb":
        return "saved_model"
    if path.suffix == ".json":
        return "tfjs"
    with path.open("rb") as file:
        start = file.read(8)
    if start == bundles.MAGIC:
        return "litertlm"
    if start[4:] == readers.TFLITE:
        return "tflite"
    # A ModelProto begins with its version, or with another of its few fields.
    if path.suffix == ".onnx" or start[:1] == b"\x08":
        return "onnx"
    raise ValueError(f"{path} is no model of any known format: {', '.join(FORMATS.values())}")


def inspect(path: str | os.PathLike[str]) -> Description:
    """What a SavedModel, TF Lite, ONNX, TF.js or LiteRT-LM model holds; nothing of it is run.

    Args:
      path: the file or directory; for TF.js the directory or its `model.json`, for a SavedModel
        the directory or its `saved_model.pb`.

    Raises:
      FileNotFoundError: if there is nothing at `path`.
      ValueError: if it is in none of the formats, or is damaged.
      ImportError: for a model of ONNX or LiteRT-LM, if the extra of that name is not installed.
    """
    path = checked_path(path)
    made = format_of(path)
    try:
        if made == "tflite":
            return readers.of_tflite(path.read_bytes())
        if made == "litertlm":
            return bundles.described(path)
        if made == "onnx":
            with path.open("rb") as file:
                model = onnx_files.without_weights(file)
            return readers.of_onnx(model, path.parent, readers.size_of_files(path))
        return readers.of_tfjs(path) if made == "tfjs" else saved_model_files.describe(path)
    except (ImportError, OSError):
        raise
    except Exception as error:  # Whatever the readers raise of damaged files.
        reason = str(error)
        if not isinstance(error, ValueError):
            reason = f"it seems to be damaged ({type(error).__name__}: {error})"
        raise ValueError(f"{path} cannot be read as {FORMATS[made]}: {reason}") from error
