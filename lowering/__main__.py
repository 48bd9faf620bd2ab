"""Exports JAX functions, and shows what becomes of them.

    python -m lowering export my.models:predict --arg "x=f32[b,224,224,3]" --to tflite \
        --output model.tflite
    python -m lowering show my.models:predict --arg "x=f32[1,224,224,3]"
    python -m lowering check my.models:predict --arg "x=f32[1,224,224,3]" --to onnx tfjs

A function is named by its module and its name. Arguments are given in the order of its parameters,
as `dtype[dimensions]` with an optional name in front; a dimension that is a word is symbolic.

The exit code is 0 if all went well; 1 if the function cannot be exported, or a consumer lacks an op
that it needs; 2 if the command makes no sense.
"""

import argparse
import importlib
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

FORMATS = ("saved_model", "tflite", "onnx", "tfjs")

_DTYPES = {
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
_ARGUMENT = re.compile(r"(?:(?P<name>\w+)=)?(?P<dtype>\w+)\[(?P<dims>[^\]]*)\]")


class CommandError(Exception):
    """The command makes no sense."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    sys.path.insert(0, os.getcwd())
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from lowering.errors import LoweringError

    try:
        return args.run(args)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (LoweringError, ImportError, FileExistsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    description, _, epilog = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m lowering",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = commands.add_parser("export", help="write a model")
    export.add_argument("--to", required=True, choices=FORMATS, help="the format")
    export.add_argument(
        "--output", required=True, type=pathlib.Path, help="the file or directory to write"
    )
    export.add_argument("--quantize", help="the quantization, as the exporter of the format has it")
    export.add_argument("--no-verify", action="store_true", help="do not compare it with JAX")
    export.set_defaults(run=_export)
    show = commands.add_parser("show", help="show the ops of the graph")
    show.add_argument("--target", default="portable", help="the target; %(default)s by default")
    show.set_defaults(run=_show)
    check = commands.add_parser("check", help="export and verify a model, and keep nothing")
    check.add_argument("--to", nargs="+", choices=FORMATS, default=FORMATS, help="the formats")
    check.set_defaults(run=_check)
    for command in (export, show, check):
        command.add_argument("function", help="the function, as module:name")
        command.add_argument(
            "--arg",
            action="append",
            default=[],
            metavar="SPEC",
            help='an argument, such as "x=f32[b,224,224,3]"; may be repeated',
        )
    return parser


def _function(name: str) -> Callable[..., Any]:
    """The function that a `module:name` names."""
    module_name, _, path = name.partition(":")
    if not path:
        raise CommandError(f"{name!r} is no function; write it as module:name")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CommandError(f"there is no module {module_name!r}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise CommandError(f"{module_name} has no {path!r}")
        found = getattr(found, part)
    if not callable(found):
        raise CommandError(f"{name} is no function but {type(found).__name__}")
    return found


def _arguments(specs: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an export, and its options that follow from them."""
    import jax

    args, shapes, names = [], [], []
    for spec in specs:
        match = _ARGUMENT.fullmatch(spec.replace(" ", ""))
        if match is None:
            raise CommandError(
                f"{spec!r} is no argument; write it as dtype[dimensions], such as x=f32[b,28,28]"
            )
        dims = [dim for dim in match["dims"].split(",") if dim]
        dtype = _DTYPES.get(match["dtype"], match["dtype"])
        try:
            sizes = [int(dim) if dim.isdigit() else 1 for dim in dims]
            args.append(jax.ShapeDtypeStruct(sizes, jax.numpy.dtype(dtype)))
        except TypeError as error:
            known = ", ".join([*_DTYPES, "bool"])
            raise CommandError(f"{match['dtype']!r} is no dtype; known are {known}") from error
        shapes.append(None if all(map(str.isdigit, dims)) else ", ".join(dims))
        names.append(match["name"])
    options: dict[str, Any] = {}
    if any(shapes):
        options["polymorphic_shapes"] = shapes
    if names and all(names):
        options["input_names"] = names
    return tuple(args), options


def _write(args: argparse.Namespace, to: str, output: pathlib.Path, **more: Any) -> None:
    from lowering import export

    fun = _function(args.function)
    inputs, options = _arguments(args.arg)
    options.update(more)
    if to == "saved_model":
        export.to_saved_model(fun, inputs, output, **options)
    elif to == "tfjs":
        export.to_tfjs(fun, inputs, output, **options)
    else:
        if output.exists():
            raise FileExistsError(f"{output} exists")
        make = export.to_tflite if to == "tflite" else export.to_onnx
        output.write_bytes(make(fun, inputs, **options))


def _export(args: argparse.Namespace) -> int:
    options: dict[str, Any] = {"verify": not args.no_verify}
    if args.quantize:
        if args.to not in ("tflite", "tfjs"):
            raise CommandError(f"--quantize is not for {args.to}")
        options["quantize"] = args.quantize
    try:
        _write(args, args.to, args.output, **options)
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from error
    print(f"{args.output} is written" + ("" if args.no_verify else ", and computes what JAX does"))
    return 0


def _show(args: argparse.Namespace) -> int:
    from lowering.export import listing
    from lowering.export.entry import entry
    from lowering.targets import TARGETS

    if args.target not in TARGETS:
        raise CommandError(f"unknown target {args.target!r}; known are {', '.join(TARGETS)}")
    inputs, options = _arguments(args.arg)
    rows = listing.lines(entry(_function(args.function), inputs, TARGETS[args.target], **options))
    titles = ("op", "dtype", "count", "primitive", "refused by", "line")
    table = [titles] + [
        (r.op, r.dtype, str(r.count), r.primitive, ", ".join(r.refused), r.source) for r in rows
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(titles))]
    for row in table:
        cells = zip(row, widths, strict=True)
        print("  ".join(text.ljust(width) for text, width in cells).rstrip())
    print(f"{sum(row.count for row in rows)} ops")
    return 0


def _check(args: argparse.Namespace) -> int:
    from lowering.errors import LoweringError

    _function(args.function)
    failed = False
    for to in args.to:
        with tempfile.TemporaryDirectory() as folder:
            try:
                _write(args, to, pathlib.Path(folder) / "model")
                print(f"{to}: computes what JAX does")
            except (LoweringError, ImportError) as error:
                failed = True
                print(f"{to}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
