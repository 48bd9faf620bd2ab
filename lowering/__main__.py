"""Exports JAX functions, and shows what becomes of them.

    python -m lowering export my.models:predict --arg "x=f32[b,224,224,3]" --to tflite \
        --output model.tflite
    python -m lowering show my.models:predict --arg "x=f32[1,224,224,3]"
    python -m lowering check my.models:predict --arg "x=f32[1,224,224,3]" --to onnx tfjs

`export` writes a model, `show` lists the ops of the graph and what each consumer would refuse, and
`check` exports and verifies models without keeping them.

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
import functools
import importlib
import logging
import os
import pathlib
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_ARGUMENT = re.compile(r"(?:(?P<name>\w+)=)?(?P<dtype>\w+(?:<\w+>)?)\[(?P<dims>[^\]]*)\]")
# The implementations of PRNG keys, as the dtypes of JAX name them: `key<fry>`.
_KEYS = {"key": None, "key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


# The options of exporters, by the name of the argument, and the formats that have them.
_OPTIONS: Mapping[str, Sequence[str]] = {
    "allow_flex": ("tflite",),
    "io_dtype": ("tflite",),
    "opset": ("onnx",),
    "quantize": ("tflite", "tfjs"),
    "representative_data": ("tflite",),
    "shard_bytes": ("tfjs",),
    "target": ("saved_model",),
    "tolerance": FORMATS,
    "output_names": FORMATS,
}


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
    show.set_defaults(run=_show)

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
        help="tflite: dynamic, float16 or full; tfjs: uint8, uint16 or float16",
    )
    command.add_argument(
        "--representative-data",
        metavar="MODULE:NAME",
        help="tflite, for --quantize full: tuples of inputs, or a function that returns them",
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
    command.add_argument("--shard-bytes", type=int, help="tfjs: the size of a file of weights")
    command.add_argument("--target", help="saved_model: the target, such as tf; default xla")


def _named(name: str) -> Any:
    """What a `module:name` names."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise CommandError(f"{name!r} names nothing; write it as module:name")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CommandError(f"there is no module {module_name!r}: {error}") from error
    except Exception as error:
        raise CommandError(
            f"{module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise CommandError(f"{module_name} has no {path!r}")
        found = getattr(found, part)
    return found


def _function(name: str) -> Callable[..., Any]:
    """The function that a `module:name` names."""
    found = _named(name)
    if not callable(found):
        raise CommandError(f"{name} is no function but {type(found).__name__}")
    return found


def _value(name: str) -> Any:
    """The value that a `module:name` names, or that the function of this name returns."""
    found = _named(name)
    return found() if callable(found) else found


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
        dims = match["dims"].split(",") if match["dims"] else []
        if not all(dims):
            raise CommandError(f"{spec!r} lacks a dimension between two commas")
        try:
            sizes = [int(dim) if dim.isdigit() else 1 for dim in dims]
            args.append(jax.ShapeDtypeStruct(sizes, _dtype(match["dtype"])))
        except TypeError as error:
            known = ", ".join([*_DTYPES, "bool", *_KEYS])
            raise CommandError(f"{match['dtype']!r} is no dtype; known are {known}") from error
        shapes.append(None if all(map(str.isdigit, dims)) else ", ".join(dims))
        names.append(match["name"])
    options: dict[str, Any] = {}
    if any(shapes):
        options["polymorphic_shapes"] = shapes
    if any(names):
        if not all(names):
            raise CommandError("some arguments have names; give names to all or to none")
        options["input_names"] = names
    return tuple(args), options


def _dtype(name: str) -> Any:
    """The dtype of a name, which may be short."""
    import jax

    if name in _KEYS:
        return jax.eval_shape(lambda: jax.random.key(0, impl=_KEYS[name])).dtype
    return jax.numpy.dtype(_DTYPES.get(name, name))


def _inputs(path: pathlib.Path, args: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The arrays of a file, in the order of the arguments; PRNG keys are made of their words."""
    import jax
    import numpy as np

    from lowering import jax_compat
    from lowering.avals import is_key
    from lowering.export import held

    if not names:
        raise CommandError('--inputs needs names of the arguments, as in --arg "x=f32[3]"')
    try:
        arrays = dict(np.load(path))
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(f"{path} is no file of arrays (np.savez): {error}") from error
    if set(arrays) != set(names):
        raise CommandError(
            f"{path} has the arrays {', '.join(sorted(arrays))}, not {', '.join(names)}"
        )
    for arg, name in zip(args, names, strict=True):
        x, expected = arrays[name], held.words(arg)
        if x.dtype != expected.dtype or x.ndim != len(expected.shape):
            raise CommandError(
                f"{name} of {path} is {x.dtype.name} with {x.ndim} dimensions, not "
                f"{expected.dtype.name} with {len(expected.shape)}"
            )
        if is_key(arg.dtype):
            arrays[name] = jax.random.wrap_key_data(x, impl=jax_compat.key_impl(arg.dtype))
    return tuple(arrays[name] for name in names)


def _call(args: argparse.Namespace) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function, its arguments and the options that all commands have."""
    fun = _function(args.function)
    inputs, options = _arguments(args.arg)
    if args.params is not None:
        options["params"] = _value(args.params)
    if args.constraint:
        if "polymorphic_shapes" not in options:
            raise CommandError("--constraint is for symbolic dimensions, and no --arg has one")
        options["polymorphic_constraints"] = args.constraint
    return fun, inputs, options


def _write(args: argparse.Namespace, to: str, output: pathlib.Path, **more: Any) -> None:
    from lowering import export
    from lowering.export.paths import new_path

    fun, inputs, options = _call(args)
    options.update(more)
    if args.inputs is not None:
        inputs = _inputs(args.inputs, inputs, options.get("input_names", ()))
    for name, formats in _OPTIONS.items():
        value = getattr(args, name)
        if value is not None and to in formats:
            options[name] = _value(value) if name == "representative_data" else value
    if to == "saved_model":
        export.to_saved_model(fun, inputs, output, **options)
    elif to == "tfjs":
        export.to_tfjs(fun, inputs, output, **options)
    else:
        with new_path(output) as written:
            make = export.to_tflite if to == "tflite" else export.to_onnx
            written.write_bytes(make(fun, inputs, **options))


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


def _show(args: argparse.Namespace) -> int:
    from lowering.export import listing
    from lowering.export.entry import entry
    from lowering.export.narrow import in_bits_of
    from lowering.targets import CONSUMERS, TARGETS

    if args.target not in TARGETS:
        raise CommandError(f"unknown target {args.target!r}; known are {', '.join(TARGETS)}")
    fun, inputs, options = _call(args)

    def make(target: str) -> Any:
        return entry(fun, inputs, TARGETS[target], **options)

    with in_bits_of(TARGETS[args.target]):
        rows = listing.lines(make(args.target))
    titles = ("op", "dtype", "count", "primitive", "line")
    table = [titles] + [(r.op, r.dtype, str(r.count), r.primitive, r.source) for r in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(titles))]
    for row in table:
        cells = zip(row, widths, strict=True)
        print("  ".join(text.ljust(width) for text, width in cells).rstrip())
    print(f"{sum(row.count for row in rows)} ops")
    print()
    for consumer in CONSUMERS:
        with in_bits_of(TARGETS[consumer]):
            refused = listing.refusals(functools.partial(make, consumer), TARGETS[consumer])
        print(f"{consumer}: " + ("would refuse" if refused else "refuses nothing that is known"))
        for message in refused:
            print(f"  {message}")
    return 0


def _check(args: argparse.Namespace) -> int:
    from lowering.errors import LoweringError

    _check_options(args, args.to)
    _call(args)  # Mistakes in the command are of no format.
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
