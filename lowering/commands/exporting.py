"""`export` and `check`: models of functions, written or only verified."""

import argparse
import contextlib
import pathlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lowering.commands import array_files, language_models, named, specifications
from lowering.commands.files import check_output
from lowering.commands.mistakes import CommandError, did_you_mean
from lowering.commands.parser import (
    FORMATS,
    IO_DTYPES,
    LANGUAGE_MODELS,
    OPSETS,
    QUANTIZATIONS,
    check_target,
)

# The options of exporters, by the name of the argument, and the formats that have them.
_OPTIONS: Mapping[str, Sequence[str]] = {
    "allow_flex": ("tflite",),
    "external_data": ("onnx",),
    "gradients": ("saved_model",),
    "io_dtype": ("tflite",),
    "opset": ("onnx",),
    "compute_dtype": ("onnx",),
    "quantize": ("tflite", "onnx", "tfjs", LANGUAGE_MODELS),
    "representative_data": ("tflite", "onnx"),
    "shard_bytes": ("tfjs",),
    "target": ("saved_model",),
    "tolerance": (*FORMATS, LANGUAGE_MODELS),
    "output_names": FORMATS,
    **dict.fromkeys(language_models.OPTIONS, (LANGUAGE_MODELS,)),
}
# The options that become the metadata of a model.
_METADATA = ("name", "description", "labels")


def run_export(args: argparse.Namespace) -> int:
    """Runs `export`; returns the exit code."""
    started = time.perf_counter()  # Packages are imported from here on.
    _check_options(args, [args.to])
    check_output(args.output, args.force, args.to)
    if args.to == LANGUAGE_MODELS:
        report = language_models.write(args, args.output)
    else:
        options = {"verify": not args.no_verify, "overwrite": args.force}
        report = _write(args, named.call(args), args.to, args.output, **options)
    print(f"{args.output} is written" + ("" if args.no_verify else ", and computes what JAX does"))
    if not args.quiet:
        from lowering.export.descriptions import in_columns

        rows = [(title, text) for title, text in report.rows() if title != "seconds"]
        seconds = time.perf_counter() - started
        text = f"{seconds:.1f}, of which the export itself took {report.seconds:.1f}"
        print(in_columns([*rows, ("seconds", text)]))
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Runs `check`; returns the exit code."""
    _check_options(args, args.to)
    call = named.call(args)  # Mistakes in the command are of no format.
    from lowering.errors import LoweringError

    failed = False
    for to in args.to:
        with tempfile.TemporaryDirectory() as folder:
            try:
                report = _write(args, call, to, pathlib.Path(folder) / "model")
                worst = max(report.errors.values(), default=None)
                print(
                    f"{to}: computes what JAX does"
                    + (
                        f", to {worst.found:.2g} where {worst.accepted:.2g} is accepted"
                        if worst
                        else ""
                    )
                )
            except (LoweringError, ImportError) as error:
                failed = True
                print(f"{to}: {error}")
    return 1 if failed else 0


def _write(args: argparse.Namespace, call: Any, to: str, output: pathlib.Path, **more: Any) -> Any:
    """Writes a model; returns the report on it."""
    from lowering import export

    fun, inputs, common = call
    options = {**common, **more}
    if args.inputs is not None:
        names = options.get("input_names", ())
        inputs = array_files.inputs(args.inputs, inputs, names, "polymorphic_shapes" in options)
    for name, formats in _OPTIONS.items():
        value = getattr(args, name)
        if value is not None and to in formats:
            options[name] = named.value(value) if name == "representative_data" else value
    metadata = _metadata(args)
    if metadata and to in ("tflite", "onnx"):
        options["metadata"] = metadata
    exporter: Any = getattr(export, f"to_{to}")
    return exporter(fun, inputs, output, **options)


def _metadata(args: argparse.Namespace) -> dict[str, Any]:
    found = {name: getattr(args, name) for name in _METADATA if getattr(args, name) is not None}
    if "labels" in found:
        found["labels"] = _labels(found["labels"])
    return found


def _check_options(args: argparse.Namespace, formats: Sequence[str]) -> None:
    """Refuses what is wrong without a look at the function: options that fit no format."""
    named.check(args)
    known = {**_OPTIONS, **dict.fromkeys(_METADATA, ("tflite", "onnx"))}
    for name, of_option in known.items():
        if getattr(args, name) is not None and not set(of_option) & set(formats):
            option = name.replace("_", "-")
            raise CommandError(f"--{option} is for {' and '.join(of_option)}, not {formats[0]}")
    quantizations = [x for to in formats for x in QUANTIZATIONS.get(to, ())]
    if args.quantize is not None and args.quantize not in quantizations:
        hint = did_you_mean(args.quantize, quantizations)
        raise CommandError(
            f"--quantize is one of {', '.join(quantizations)} for {' and '.join(formats)}, not "
            f"{args.quantize!r}{hint}"
        )
    if LANGUAGE_MODELS in formats:
        language_models.check(args)
    if args.target is not None:
        check_target(args.target)
    if args.io_dtype not in (None, *IO_DTYPES):
        raise CommandError(f"--io-dtype is one of {', '.join(IO_DTYPES)}, not {args.io_dtype!r}")
    needs_data = "full" if "onnx" not in formats else "int8"
    if args.quantize == needs_data and args.representative_data is None:
        raise CommandError(f"--quantize {needs_data} needs --representative-data")
    if args.representative_data is not None and args.quantize != needs_data:
        raise CommandError(f"--representative-data is for --quantize {needs_data}")
    if args.io_dtype is not None and args.quantize != "full":
        raise CommandError("--io-dtype is for --quantize full")
    if args.shard_bytes is not None and args.shard_bytes < 1:
        raise CommandError(f"--shard-bytes is a positive number of bytes, not {args.shard_bytes}")
    if args.tolerance is not None and not args.tolerance >= 0:
        raise CommandError(f"--tolerance is a number of at least 0, not {args.tolerance}")
    if len(args.functions) > 1 and list(formats) == ["onnx"]:
        raise CommandError("an ONNX model has one function; export each to a file of its own")
    if args.inputs is not None:
        array_files.check(args.inputs)
        if args.args is None and not all(specifications.parsed(x).name for x in args.arg):
            raise CommandError(array_files.NO_NAMES)
    if args.labels is not None:
        _labels(args.labels)
    if args.opset is not None:
        _check_opset(args.opset)
    if args.representative_data is not None:
        named.check_module(args.representative_data)
    names = args.output_names or ()
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"--output-names has {name!r} twice")


def _check_opset(opset: int) -> None:
    """Raises a CommandError for a version of ONNX's operators that there is not."""
    last = OPSETS[-1]
    if opset in OPSETS:
        with contextlib.suppress(ImportError):  # Its exporter says what is missing.
            from onnx import defs

            last = defs.onnx_opset_version()
    if opset not in range(OPSETS[0], last + 1):
        newest = "the newest that the installed onnx knows" if last == OPSETS[-1] else last
        raise CommandError(f"--opset is a number from {OPSETS[0]} to {newest}, not {opset}")


def _labels(path: pathlib.Path) -> list[str]:
    """The lines of a file of labels.

    Raises:
      CommandError: if it is no file of text.
    """
    if not path.is_file():
        raise CommandError(f"there is no file {path} of labels")
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is no file of labels, a text in UTF-8") from error
