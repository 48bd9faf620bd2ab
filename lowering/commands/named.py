"""What a command line names: functions and values, and arguments by their shapes and dtypes."""

import argparse
import importlib
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

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


class CommandError(Exception):
    """The command makes no sense."""


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


def function(name: str) -> Callable[..., Any]:
    """The function that a `module:name` names."""
    found = _named(name)
    if not callable(found):
        raise CommandError(f"{name} is no function but {type(found).__name__}")
    return found


def value(name: str) -> Any:
    """The value that a `module:name` names, or that the function of this name returns."""
    found = _named(name)
    return found() if callable(found) else found


def arguments(specs: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


def inputs(path: pathlib.Path, args: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
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


def call(args: argparse.Namespace) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function, its arguments and the options that all commands have."""
    fun = function(args.function)
    given, options = arguments(args.arg)
    if args.params is not None:
        options["params"] = value(args.params)
    if args.constraint:
        if "polymorphic_shapes" not in options:
            raise CommandError("--constraint is for symbolic dimensions, and no --arg has one")
        options["polymorphic_constraints"] = args.constraint
    return fun, given, options
