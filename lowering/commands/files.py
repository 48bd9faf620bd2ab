"""`inspect`, `run` and `visualize`: what is done with exported files."""

import argparse
import contextlib
import importlib.util
import pathlib
import re
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lowering.commands import array_files
from lowering.commands.mistakes import CommandError, FaultError, did_you_mean

# The viewers: the module of each, and the package that has it.
_VIEWERS = {
    "model-explorer": ("model_explorer", "ai-edge-model-explorer"),
    "netron": ("netron", "netron"),
}
# The file that a viewer opens, of formats that are directories.
_MAIN = {"saved_model": "saved_model.pb", "tfjs": "model.json"}

_NAMED = re.compile(r"(?:(?P<name>\w+)=)?(?P<path>.+)")


def run_inspect(args: argparse.Namespace) -> int:
    """Runs `inspect`; returns the exit code."""
    _check_exists(args.file)
    from lowering.export.inspection import inspect

    try:
        print(inspect(args.file))
    except ValueError as error:
        raise CommandError(str(error)) from error
    return 0


def check_output(output: pathlib.Path, force: bool, to: str | None = None) -> None:
    """Raises an error of the system if a command may not write to a path.

    Raises:
      CommandError: if it has the suffix of another format than `to`.
    """
    from lowering.export import paths

    try:
        paths.checked(output, to)
    except ValueError as error:
        raise CommandError(str(error)) from error
    paths.check_directories(output)
    if output.exists() and not _is_empty(output):
        if not paths.is_model(output):
            raise FileExistsError(f"{output} exists, and is no model")
        if not force:
            raise FileExistsError(f"{output} exists; --force replaces it")


def _is_empty(path: pathlib.Path) -> bool:
    """Whether a path is an empty directory."""
    return path.is_dir() and not any(path.iterdir())


def run_run(args: argparse.Namespace) -> int:
    """Runs `run`; returns the exit code."""
    if args.file is None:
        raise CommandError("the file of the model is missing; it stands in front of the options")
    _check_exists(args.file)
    for text in args.inputs:
        _check_exists(_path(text)[1])
    if args.output is not None:
        check_output(args.output, args.force)
    from lowering.export import loading
    from lowering.export.inspection import inspect

    given, by_name = _arrays(args.inputs)
    # All that may be wrong is found before a runtime is imported, which takes seconds.
    try:
        signatures = inspect(args.file).signatures
    except ValueError as error:
        raise CommandError(str(error)) from error
    if not args.inputs:
        _check_takes_nothing(args.file, args.signature, signatures)
    try:
        name = loading.chosen(args.file, signatures, args.signature)
    except ValueError as error:
        hint = did_you_mean(args.signature, signatures) if args.signature else ""
        raise CommandError(f"{error}{hint}") from error
    outputs = signatures[name].outputs
    if args.output is not None and args.output.suffix == ".npy" and len(outputs) != 1:
        raise CommandError(f"{args.file} has {len(outputs)} outputs; write an .npz file")
    try:
        arrays = loading.checked_inputs(signatures[name].inputs, given, by_name)
    except (TypeError, ValueError) as error:
        several = _of_several(args.signature, name, signatures)
        raise CommandError(f"{error}{several}") from error
    try:
        model = loading.load(args.file, name)
    except Exception as error:
        raise _fault(args.file, "loaded", error) from error
    try:
        results = model.run(arrays)
    except Exception as error:
        raise _fault(args.file, "run", error) from error
    if args.output is not None:
        _write(args.output, results, args.force)
        print(f"{args.output} is written")
        return 0
    for array in outputs:
        x = results[array.name]
        print(f"{array.name}: {x.dtype}[{', '.join(map(str, x.shape))}]")
        print(x)
    return 0


def _check_takes_nothing(
    file: pathlib.Path, chosen: str | None, signatures: Mapping[str, Any]
) -> None:
    """Raises a CommandError if all functions that may be run have inputs."""
    of_chosen = [x for name, x in signatures.items() if chosen in (None, name)]
    if not of_chosen:
        return  # There is no such function, which is said later.
    if all(x.inputs for x in of_chosen):
        texts = [", ".join(map(str, x.inputs)) for x in of_chosen]
        raise CommandError(f"{file} takes {' or '.join(texts)}; give the arrays by --inputs")


def _write(path: pathlib.Path, results: Mapping[str, Any], overwrite: bool) -> None:
    """Writes an .npz or .npy file; what was there stays until the new one is complete.

    `np.savez` takes the arrays as keywords, so it has no arrays called `file` or `allow_pickle`.
    """
    import numpy as np

    from lowering.export import paths

    with paths.new_path(path, overwrite) as written:
        if path.suffix == ".npy":
            (array,) = results.values()
            np.save(written, array, allow_pickle=False)
            return
        with zipfile.ZipFile(written, "w") as archive:
            for name, x in results.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.asanyarray(x), allow_pickle=False)


def _of_several(chosen: str | None, name: str, signatures: Collection[str]) -> str:
    """The end of a message on the inputs of a function that the command has not chosen."""
    if chosen is not None or len(signatures) == 1:
        return ""
    names = ", ".join(signatures)
    return f"; this is the function {name!r}, and --signature chooses one of {names}"


def _fault(file: pathlib.Path, doing: str, error: Exception) -> Exception:
    """What is said of a file that a runtime refuses: the first line of the runtime's error."""
    if isinstance(error, ImportError):
        return error
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return FaultError(f"{file} cannot be {doing}: {first}")


def run_visualize(args: argparse.Namespace) -> int:
    """Runs `visualize`; returns the exit code. It ends when it is interrupted."""
    _check_exists(args.file)
    from lowering.export.inspection import format_of, inspect

    try:
        made = format_of(args.file)
        with contextlib.suppress(ImportError):  # A viewer needs no package of the format.
            inspect(args.file)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if args.file.name in _MAIN.values():
        args.file = args.file.parent
    viewer = args.viewer or _installed_viewer(made)
    if viewer == "model-explorer" and made == "onnx":
        raise CommandError("Model Explorer reads no ONNX; --with netron shows it")
    module, package = _VIEWERS[viewer]
    if not is_installed(module):
        raise ImportError(f"{viewer} is not installed: pip install {package}")
    imported: Any = importlib.import_module(module)
    with _graph(args.file, made) as path:
        if viewer == "netron":
            imported.start(str(path))
            imported.wait()
        else:
            imported.visualize(str(args.file if made == "saved_model" else path))
    return 0


@contextlib.contextmanager
def _graph(file: pathlib.Path, made: str) -> Iterator[pathlib.Path]:
    """A context with the path of a graph that viewers read."""
    if made != "litertlm":
        yield file / _MAIN[made] if file.is_dir() and made in _MAIN else file
        return
    from lowering.export import bundles

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{file.stem}.tflite"
        try:
            path.write_bytes(bundles.model_of(file))
        except (ImportError, OSError):
            raise
        except Exception as error:  # Whatever a damaged header leads to.
            raise CommandError(f"{file} cannot be read as LiteRT-LM: {error}") from error
        yield path


def is_installed(module: str) -> bool:
    """Whether a package has a module."""
    return importlib.util.find_spec(module) is not None


def _installed_viewer(made: str) -> str:
    """The viewer that is installed and reads a format; Netron reads all."""
    for viewer, (module, _) in _VIEWERS.items():
        if is_installed(module) and (viewer == "netron" or made != "onnx"):
            return viewer
    packages = " or ".join(package for _, package in _VIEWERS.values())
    if made == "onnx":
        packages = "netron"
    raise ImportError(f"to look at a graph, install a viewer: pip install {packages}")


def _check_exists(path: pathlib.Path) -> None:
    if not path.exists():
        raise CommandError(f"there is no file {path}")


def _path(text: str) -> tuple[str | None, pathlib.Path]:
    """The name in front of a file, or None, and the file."""
    match = _NAMED.fullmatch(text)
    if match is None or pathlib.Path(text).exists():
        return None, pathlib.Path(text)
    return match["name"], pathlib.Path(match["path"]).expanduser()


def _arrays(texts: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arrays of files: those in the order of the inputs, and those by name."""
    in_order: list[Any] = []
    by_name: dict[str, Any] = {}
    for text in texts:
        name, path = _path(text)
        found = array_files.arrays(path)
        if isinstance(found, dict):
            by_name.update(found)
        elif name is None:
            in_order.append(found)
        else:
            by_name[name] = found
    return in_order, by_name
