"""Exports JAX functions, and shows what becomes of them.

    python -m lowering export my.models:predict --arg "x=f32[b,224,224,3]" --to tflite \
        --output model.tflite
    python -m lowering show my.models:predict --arg "x=f32[1,224,224,3]"
    python -m lowering check my.models:predict --arg "x=f32[1,224,224,3]" --to onnx tfjs

`export` writes a model, `show` lists the ops of the graph and what each consumer would refuse, and
`check` exports and verifies models without keeping them. `show --passes` prints the program as JAX
has traced it, and as each pass leaves it.

A function is named by its module and its name; modules are found in the current directory, too.
Arguments are given in the order of its parameters, as `dtype[dimensions]` with an optional name in
front; a dimension that is a word is symbolic. PRNG keys are `key[dimensions]`, or `key<rbg>[...]`
of another implementation; the model takes their words. With --params the first parameter of the
function is the pytree of that name, which the model keeps.

Exit codes:
  0  all went well
  1  the function cannot be exported, a package is missing, a file is in the way, or the model does
     not compute what JAX does; for `show`, the function cannot be lowered
  2  the command makes no sense: a wrong option, argument or name
  130  interrupted
"""

import argparse
import contextlib
import logging
import os
import pathlib
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lowering.commands import named
from lowering.commands.named import CommandError
from lowering.commands.show import run_show

FORMATS = ("saved_model", "tflite", "onnx", "tfjs")

# The options of exporters, by the name of the argument, and the formats that have them.
_OPTIONS: Mapping[str, Sequence[str]] = {
    "allow_flex": ("tflite",),
    "io_dtype": ("tflite",),
    "opset": ("onnx",),
    "external_data": ("onnx",),
    "quantize": ("tflite", "onnx", "tfjs"),
    "representative_data": ("tflite", "onnx"),
    "shard_bytes": ("tfjs",),
    "target": ("saved_model",),
    "tolerance": FORMATS,
    "output_names": FORMATS,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    sys.path.insert(0, os.getcwd())
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from lowering.errors import LoweringError

    try:
        with _progress(args.quiet):
            return args.run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if args.traceback:
            traceback.print_exc()
        is_expected = isinstance(error, LoweringError | CommandError | ImportError | OSError)
        text = str(error) if is_expected else f"{type(error).__name__}: {error}"
        print(f"error: {text}", file=sys.stderr)
        if not is_expected and not args.traceback:
            print("--traceback shows where it comes from", file=sys.stderr)
        is_mistake = isinstance(error, CommandError | TypeError | ValueError)
        return 2 if is_mistake and not isinstance(error, LoweringError) else 1
    finally:
        sys.path.remove(os.getcwd())


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[None]:
    """A context in which exports say on the standard error what they do.

    What TensorFlow and the converters warn of is not said.
    """
    log, tensorflow = logging.getLogger("lowering.export"), logging.getLogger("tensorflow")
    handler, levels = logging.StreamHandler(), (log.level, tensorflow.level)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    tensorflow.setLevel(logging.ERROR)
    log.propagate = False
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.removeHandler(handler)
        log.propagate = True
        log.setLevel(levels[0])
        tensorflow.setLevel(levels[1])


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
    export.add_argument("--no-verify", action="store_true", help="do not compare it with JAX")
    export.set_defaults(run=_export)

    show = commands.add_parser("show", help="show the ops of the graph, and what consumers refuse")
    show.add_argument("--target", default="portable", help="the target; %(default)s by default")
    show.add_argument(
        "--passes",
        action="store_true",
        help="show instead what each pass makes of the program before it is lowered",
    )
    show.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PASS",
        help="skip the pass of this name; may be repeated",
    )
    show.set_defaults(run=run_show)

    check = commands.add_parser("check", help="export and verify models, and keep nothing")
    check.add_argument(
        "--to", nargs="+", choices=FORMATS, default=FORMATS, help="the formats; by default all"
    )
    check.set_defaults(run=_check)

    for command in (export, show, check):
        _add_function(command)
    for command in (export, check):
        _add_options(command)
    return parser


def _add_function(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", help="the function, as module:name")
    command.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help='an argument, such as "x=f32[b,224,224,3]"; may be repeated',
    )
    command.add_argument(
        "--params", metavar="MODULE:NAME", help="a pytree, or a function that returns one"
    )
    command.add_argument(
        "--constraint",
        action="append",
        default=[],
        metavar="TEXT",
        help='a constraint on symbolic dimensions, such as "b >= 4"; may be repeated',
    )
    command.add_argument("--quiet", action="store_true", help="do not say what is being done")
    command.add_argument("--traceback", action="store_true", help="show tracebacks of errors")


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--inputs",
        type=pathlib.Path,
        metavar="FILE.npz",
        help="arrays to verify the model with, by the names in --arg; by default random ones",
    )
    command.add_argument("--output-names", nargs="+", metavar="NAME", help="names of the results")
    command.add_argument("--tolerance", type=float, help="the largest relative error accepted")
    command.add_argument(
        "--quantize",
        help="tflite: dynamic, float16 or full; onnx: dynamic, int8 or int4; tfjs: uint8, uint16 "
        "or float16",
    )
    command.add_argument(
        "--representative-data",
        metavar="MODULE:NAME",
        help="tflite, for --quantize full, and onnx, for --quantize int8: tuples of inputs, or a "
        "function that returns them",
    )
    command.add_argument(
        "--io-dtype", help="tflite, for --quantize full: int8 or uint8 inputs and outputs"
    )
    command.add_argument(
        "--allow-flex",
        action="store_true",
        default=None,
        help="tflite: permit ops that only a runtime with TensorFlow's kernels runs",
    )
    command.add_argument("--opset", type=int, help="onnx: the version of the set of operators")
    command.add_argument(
        "--external-data",
        action="store_true",
        default=None,
        help="onnx: write weights to a file beside the model, as is done beyond 2 GB",
    )
    command.add_argument("--shard-bytes", type=int, help="tfjs: the size of a file of weights")
    command.add_argument("--target", help="saved_model: the target, such as tf; default xla")


def _write(args: argparse.Namespace, to: str, output: pathlib.Path, **more: Any) -> None:
    from lowering import export
    from lowering.export.paths import new_path

    fun, inputs, options = named.call(args)
    options.update(more)
    if args.inputs is not None:
        inputs = named.inputs(args.inputs, inputs, options.get("input_names", ()))
    for name, formats in _OPTIONS.items():
        value = getattr(args, name)
        if value is not None and to in formats:
            options[name] = named.value(value) if name == "representative_data" else value
    if to == "saved_model":
        export.to_saved_model(fun, inputs, output, **options)
    elif to == "tfjs":
        export.to_tfjs(fun, inputs, output, **options)
    elif to == "onnx":
        export.to_onnx(fun, inputs, path=output, **options)
    else:
        with new_path(output) as written:
            written.write_bytes(export.to_tflite(fun, inputs, **options))


def _check_options(args: argparse.Namespace, formats: Sequence[str]) -> None:
    """Refuses options that none of some formats has."""
    for name, known in _OPTIONS.items():
        if getattr(args, name) is not None and not set(known) & set(formats):
            option = name.replace("_", "-")
            raise CommandError(f"--{option} is for {' and '.join(known)}, not {formats[0]}")


def _export(args: argparse.Namespace) -> int:
    _check_options(args, [args.to])
    _write(args, args.to, args.output, verify=not args.no_verify)
    print(f"{args.output} is written" + ("" if args.no_verify else ", and computes what JAX does"))
    return 0


def _check(args: argparse.Namespace) -> int:
    from lowering.errors import LoweringError

    _check_options(args, args.to)
    named.call(args)  # Mistakes in the command are of no format.
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
